"""A process that dies at any call it makes to the outside: nobody sees two answers, and the job comes to its end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from breakwater.domain.results import Completed
from breakwater.domain.states import Status
from breakwater.domain.stream_events import Done, TextDelta
from breakwater.usecases.read import with_result
from tests.fakes.outside import answer
from tests.support.reader import reader_of
from tests.support.streams import numbered, stream_world

PIECES = ("Once ", "upon ", "a time")
WHOLE = "".join(PIECES)


class Died(BaseException):
    """The process is gone; nothing catches it."""


def counting(dies_at: int | None) -> tuple[Callable[[str, str], None], list[str]]:
    """A hook that counts every call to the outside and dies once, at the one it is told."""
    calls: list[str] = []

    def hook(name: str, when: str) -> None:
        calls.append(f"{name} {when}")
        if dies_at is not None and len(calls) == dies_at:
            raise Died

    return hook, calls


def lived(workflow: str, dies_at: int | None = None, *, cancels: bool = False) -> tuple[Any, str, list[str]]:
    """One job's life, with a death in it; afterwards everything that recovers it."""
    hook, calls = counting(dies_at)
    world = stream_world()
    job_id = world.submit(workflow, stream=True).job.job_id

    def line(_call, resume):
        """With numbers where it can be gone on with; every piece takes its time, so that each is a segment."""
        whole = [*numbered(*PIECES, start=(resume.after or 0) if resume else 0)]
        plain = [TextDelta(text=piece) for piece in PIECES]
        events = whole if workflow == "told" else plain
        cancel = [lambda: world.cancel(job_id)] if cancels else []
        paced = [part for event in events for part in (event, 300)]
        return [*paced[:3], *cancel, *paced[3:], Done(result=answer(WHOLE))]

    world.provider.streams = [line] * 20
    done = Completed(result=answer(WHOLE, provider_job_id="resp_1"))
    world.provider.jobs["resp_1"] = {"job_id": job_id, "execution_id": "x", "outcome": done}
    world.store._hook = world.provider.hook = world.queues.hook = hook
    with suppress(Died):
        world.pump()
    reader = reader_of(world, job_id)
    with suppress(Died):
        reader.connect()
    for _ in range(3):
        world.clock.advance(5_000)
        with suppress(Died):
            world.sweep()
        with suppress(Died):
            world.pump()
    with suppress(Died):
        world.settle()
    world.settle()
    return world, job_id, calls


def assert_honest(world: Any, job_id: str) -> None:
    """What is shown, told and stored is one story of one answer."""
    job = world.job(job_id)
    reader = reader_of(world, job_id).read_all()
    assert job.final
    assert WHOLE.startswith(reader.text)
    shown = with_result(world.deps, job)
    if job.status is Status.SUCCEEDED:
        assert (reader.text, reader.end[0], shown["result"]["text"]) == (WHOLE, "done", WHOLE)
    else:
        assert reader.end[0] == ("cancelled" if job.status is Status.CANCELLED else "failed")
        assert WHOLE.startswith((shown.get("partial_result") or {}).get("text", ""))
    assert reader.end[1]["reason"] == job.reason.value
    assert not world.pending()


@pytest.mark.parametrize("cancels", [False, True])
@pytest.mark.parametrize("workflow", ["chat", "told"])
def test_a_process_may_die_at_any_call(workflow, cancels):
    """Each call to table, queues and provider, just before it and just after it."""
    _, _, calls = lived(workflow, cancels=cancels)

    for dies_at in range(1, len(calls) + 1):
        world, job_id, _ = lived(workflow, dies_at, cancels=cancels)
        try:
            assert_honest(world, job_id)
        except AssertionError as error:
            raise AssertionError(f"after a death at {dies_at}: {calls[dies_at - 1]}") from error
        job = world.job(job_id)
        if workflow == "told" and not cancels and job.partial_output_committed:
            assert (job.status, job.attempt) == (Status.SUCCEEDED, 1)
        if job.partial_output_committed and workflow == "chat" and job.attempt == 1:
            assert len(world.provider.streamed) == 1
