"""What became of every request of a provider batch?

Results are read from the files, never from the batch's status: an expired batch has paid results, a completed one can
be all failures. Lines are joined to requests by `custom_id`, in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from breakwater.domain.classify import classify, succeeded
from breakwater.domain.reading import inside, word
from breakwater.domain.rules.bodies import parse_json
from breakwater.domain.signals import ErrorClass, Reply, Signal
from breakwater.domain.values import dataclass

Json = Mapping[str, Any]
Lines = Iterable[str | Json]

_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
_NOT_RUN = frozenset({"batch_expired", "batch_cancelled"})
_NEVER_ALL = frozenset({"expired", "cancelled"})  # batches that end before every request was run
_NO_ROOM = "token_limit_exceeded"  # of a batch: too many tokens are queued in others, wait until they are done
_OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcomes:
    """Every request in exactly one place. `settled` holds the answers' bodies, `failed` what was said instead.

    `run_again` were never run, so nothing was paid for them. `waiting` can't be judged yet: the batch still runs, or a
    file it names was not read.
    """

    settled: Mapping[str, Json]
    failed: Mapping[str, Signal]
    run_again: frozenset[str]
    waiting: frozenset[str]


def batch_outcomes(
    batch: Json, custom_ids: Collection[str], output: Lines | None, errors: Lines | None, *, provider: str = "openai"
) -> BatchOutcomes:
    """The outcome of each of `custom_ids`. `output` and `errors` are the files' lines; None means not read.

    A success outweighs an error under the same id. A request that a finished batch has no line for is an unknown
    outcome, not a reason to pay again.
    """
    asked = frozenset(custom_ids)
    replies = {key: reply for key, reply in _replies(errors, output) if key in asked}
    settled = {key: reply.body for key, reply in replies.items() if succeeded(reply)}
    not_run = {key for key, reply in replies.items() if key not in settled and _was_not_run(reply)}
    failed = {key: classify(provider, reply) for key, reply in replies.items() if key not in settled.keys() | not_run}
    silent = asked - replies.keys()
    if _unread(batch, output, errors):
        return BatchOutcomes(settled=settled, failed=failed, run_again=frozenset(not_run), waiting=silent)
    if batch.get("status") in _NEVER_ALL or _had_no_room(batch):
        return BatchOutcomes(settled=settled, failed=failed, run_again=silent | not_run, waiting=frozenset())
    rest = dict.fromkeys(silent, _of_the_whole(batch, provider))
    return BatchOutcomes(settled=settled, failed=failed | rest, run_again=frozenset(not_run), waiting=frozenset())


def _unread(batch: Json, output: Lines | None, errors: Lines | None) -> bool:
    files = ((batch.get("output_file_id"), output), (batch.get("error_file_id"), errors))
    return batch.get("status") not in _ENDED or any(file_id and lines is None for file_id, lines in files)


def _replies(*files: Lines | None) -> Iterator[tuple[str, Reply]]:
    """Each line as the reply it records; a later file outweighs an earlier one."""
    for line in (line for file in files for line in file or ()):
        entry = parse_json(line) if isinstance(line, str) else line
        custom_id = word(inside(entry, "custom_id"))
        if custom_id is not None:
            yield custom_id, _reply(entry)


def _reply(entry: Json) -> Reply:
    status, error = inside(entry, "response", "status_code"), entry.get("error")
    if isinstance(status, int):
        return Reply(status=status, body=inside(entry, "response", "body"))
    return Reply(status=_OK, body={"error": error or "no answer"})


def _was_not_run(reply: Reply) -> bool:
    return inside(reply.body, "error", "code") in _NOT_RUN


def _had_no_room(batch: Json) -> bool:
    """Refused as a whole for what other batches have queued: nothing is wrong with it, and nothing of it was run."""
    data = inside(batch, "errors", "data")
    first = data[0] if isinstance(data, list) and data else None
    return batch.get("status") == "failed" and inside(first, "code") == _NO_ROOM


def _of_the_whole(batch: Json, provider: str) -> Signal:
    """What a batch that failed before it ran says; else that nobody knows."""
    data = inside(batch, "errors", "data")
    if batch.get("status") == "failed" and isinstance(data, list) and data:
        return classify(provider, Reply(status=400, body={"error": data[0]}))
    return Signal(error_class=ErrorClass.OUTCOME_UNKNOWN, rule="adapter.no_batch_line")
