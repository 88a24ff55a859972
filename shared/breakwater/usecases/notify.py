"""How does an owner's callback hear of a job's end? One signed message under one id, tried for up to three days.

The id is the effect's, the same at every try and at every redelivery. A receiver that answers 410, or that takes
nothing for three days, is left in peace: later messages to its URL are given up at once, until somebody asks for one
again. Why a message did not arrive stands in the job.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from breakwater.domain.address import Because, Forbidden, target_of
from breakwater.domain.callbacks import Delivered, Disabled, Notified, Refused, Retry, next_try
from breakwater.domain.errors import InvalidRequest, SecretUnavailable
from breakwater.domain.job import Job, Owed
from breakwater.domain.job_event import kind_of
from breakwater.domain.states import EffectKind
from breakwater.domain.timing import HOUR, SECOND
from breakwater.domain.values import dataclass
from breakwater.domain.zones import utc_text
from breakwater.usecases.deps import Deps

DEFAULT = "default"  # signs for owners without a secret of their own
_LATELY = 5 * SECOND
_NO_SECRET = "no_usable_secret"  # noqa: S105 - a reason
_FIX: Mapping[Because, str] = {
    Because.UNREADABLE_URL: "send an absolute URL in plain characters",
    Because.NOT_HTTPS: "send a URL that begins with https://",
    Because.CREDENTIALS_IN_URL: "leave name and password out; the signature tells you who sends",
    Because.HOST_NOT_ALLOWED: "ask the operator to add the host to this owner's `callback_hosts`",
    Because.ADDRESS_NOT_PUBLIC: "send a host with a public address",
}


@dataclass(frozen=True, slots=True)
class Later:
    """It is still owed; why it was not delivered now."""

    owed: Owed
    why: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """It is owed no longer, and was not delivered."""

    why: str


Outcome = Later | GivenUp | None
"""What became of an effect; None: delivered."""


def check_callback(deps: Deps, owner_key: str, url: str | None) -> None:
    """Raises `InvalidRequest` for a callback that could never be reached; costs nothing without one."""
    if url is None:
        return
    target = target_of(url, _hosts(deps, owner_key), deps.loopback_hosts)
    if isinstance(target, Forbidden):
        raise InvalidRequest(
            "The callback URL can't be used.",
            field="callback_url",
            rule=target.because.value,
            fix=_FIX[target.because],
        )


def notify(deps: Deps, job: Job, webhook_id: str, detail: Mapping[str, Any], owed: Owed) -> Outcome:
    """One try. Whoever repeats it does so under the same id."""
    url = job.callback_url
    if url is None:
        return None
    now = deps.now()
    first_at = int(owed.ref) if owed.ref else now
    place = callback_key(job.owner_key, url)
    known = fared(deps, place)
    if known.get("disabled") and (owed.ref is None or int(known["at"]) > first_at):  # and not asked for since
        return GivenUp(f"disabled: {known['disabled']}")
    answer = _sent(deps, job, url, webhook_id, _payload(job, detail))
    _tell(deps, job, webhook_id, answer, owed.tries + 1)
    if isinstance(answer, Delivered):
        if known and now - int(known["at"]) >= HOUR:
            _learn(deps, place, {"ok_at": now})
        return None
    if isinstance(answer, Disabled):
        _learn(deps, place, {"disabled": answer.reason})
        return GivenUp(answer.reason)
    if isinstance(answer, Refused) and answer.reason != _NO_SECRET:
        return GivenUp(answer.reason)
    return _again(deps, owed, answer, first_at, place, known)


def _again(
    deps: Deps, owed: Owed, answer: Retry | Refused, first_at: int, place: str, known: Mapping[str, Any]
) -> Outcome:
    """The next try, or the end of them; a receiver that took nothing in all that time gets no more."""
    now, tries = deps.now(), owed.tries + 1
    hint = answer.retry_after_ms if isinstance(answer, Retry) else None
    at = next_try(first_at, tries, now, deps.draw(), hint)
    if at is not None:
        if not known:
            _learn(deps, place, {"failing_since": now})
        return Later(Owed(next_at=at, tries=tries, ref=str(first_at)), answer.reason)
    if isinstance(answer, Retry) and int(known.get("ok_at", 0)) < first_at:
        _learn(deps, place, {"disabled": answer.reason})
    return GivenUp(answer.reason)


def fared(deps: Deps, place: str) -> Mapping[str, Any]:
    """How a callback fared, at most some seconds old; what is not in order is read again, for somebody may ask."""
    at, known = deps.noticed.callbacks.get(place, (0, None))
    if known is None or known.get("disabled") or not 0 <= deps.now() - at <= _LATELY:
        known = deps.store.latest(place) or {}
        _notice(deps, place, known)
    return known


def _learn(deps: Deps, place: str, fact: Mapping[str, Any]) -> None:
    now = deps.now()
    deps.store.put_latest(place, now, fact)
    _notice(deps, place, {**fact, "at": now})


def _notice(deps: Deps, place: str, known: Mapping[str, Any]) -> None:
    deps.noticed.callbacks[place] = deps.now(), known


def callback_key(owner_key: str, url: str) -> str:
    """Where it stands how a callback fares: by owner and URL, without the query."""
    return f"callback#{owner_key}#{hashlib.sha256(url.partition('?')[0].encode()).hexdigest()[:32]}"


def shown(job: Job) -> dict[str, Any] | None:
    """What the job says about its notification; None where it has no callback."""
    if job.callback_url is None:
        return None
    owed = job.owed.get(notify_key(job))
    if owed is not None:
        line = {"state": "owed", "tries": owed.tries, "next_at": owed.next_at}
    elif not job.final:
        line = {"state": "waiting"}
    else:
        line = {"state": "not_delivered" if job.notify_reason else "delivered"}
    return {**line, "reason": job.notify_reason} if job.notify_reason else line


def notify_key(job: Job) -> str:
    """The name of the notification of the job's present generation."""
    return f"{EffectKind.NOTIFY}#{job.generation}"


# --- one message ----------------------------------------------------------------------------------------------------


def _payload(job: Job, detail: Mapping[str, Any]) -> bytes:
    told = {
        "type": kind_of(job),
        "timestamp": utc_text(job.completed_at or job.updated_at),
        "data": dict(detail),
    }
    return json.dumps(told, separators=(",", ":"), sort_keys=True).encode()


def _sent(deps: Deps, job: Job, url: str, webhook_id: str, payload: bytes) -> Notified:
    assert deps.notifier is not None  # noqa: S101 - the effects function is wired with one
    try:
        secrets = _secrets(deps.notify_secrets(), job.owner_key)
    except SecretUnavailable:
        return Refused(_NO_SECRET)
    return deps.notifier.send(url, secrets, webhook_id, payload, deps.now(), allowed_hosts=_hosts(deps, job.owner_key))


def _secrets(known: Mapping[str, Any], owner_key: str) -> tuple[str, ...]:
    """The owner's own, else the default; all of a list sign while a rotation overlaps."""
    entry = known.get(owner_key) or known.get(DEFAULT)
    listed = entry if isinstance(entry, list) else [entry]
    return tuple(one for one in listed if isinstance(one, str))


def _hosts(deps: Deps, owner_key: str) -> tuple[str, ...]:
    listed = deps.control.owner(owner_key).get("callback_hosts")
    return tuple(one for one in listed if isinstance(one, str)) if isinstance(listed, list | tuple) else ()


def _tell(deps: Deps, job: Job, webhook_id: str, answer: Notified, tries: int) -> None:
    why = None if isinstance(answer, Delivered) else answer.reason
    deps.log.note(
        "notified" if why is None else "notification_failed",
        job_id=job.job_id,
        webhook_id=webhook_id,
        tries=tries,
        why=why,
    )
