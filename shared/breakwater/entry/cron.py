"""How does an outside scheduler start a window? GET or POST with the bearer secret, compared in constant time.

Only the schedule's name, its window and the result are told. Without the secret nobody learns which schedules there
are.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any

from breakwater.domain.errors import NotFound, SecretUnavailable
from breakwater.domain.schedules import Schedule
from breakwater.entry.http import answered, header, response
from breakwater.usecases.cron import run
from breakwater.usecases.deps import Deps

NAME = "CRON_SECRET"
MIN_CHARS = 16
Secrets = Callable[[], Mapping[str, Any]]


def cron(deps: Deps, schedules: Mapping[str, Schedule], secrets: Secrets, event: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one call."""
    why = _refusal(secrets, header(event, "authorization") or "")
    if why is not None:
        deps.log.note("cron_refused", why=why)
        return response(401, {"result": "unauthorized"}, {"www-authenticate": "Bearer"})
    return answered(event, deps.log, lambda: _run(deps, schedules, event))


def _run(deps: Deps, schedules: Mapping[str, Schedule], event: Mapping[str, Any]) -> dict[str, Any]:
    name = str((event.get("pathParameters") or {}).get("schedule") or "")
    schedule = schedules.get(name)
    if schedule is None:
        raise NotFound("There is no schedule of this name.", field="schedule", rule="exists", fix="check the name")
    ran = run(deps, schedule)
    deps.log.note("cron_called", schedule=name, window=ran.window, job_id=ran.job_id, result=ran.result)
    shown = {"schedule": name, "window": ran.window, "job_id": ran.job_id, "result": ran.result}
    headers = {"location": f"/v1/jobs/{ran.job_id}"} if ran.job_id else {}
    return response(202 if ran.result == "created" else 200, shown, headers)


def _refusal(secrets: Secrets, authorization: str) -> str | None:
    """Why the call is refused, None when it carries one of our secrets; all are compared, whichever fits."""
    try:
        usable = _usable(secrets().get(NAME))
    except SecretUnavailable:
        usable = []
    if not usable:
        return "no_usable_secret"
    scheme, _, token = authorization.strip().partition(" ")
    sent = _digest(token.strip())
    fits = [hmac.compare_digest(sent, _digest(one)) for one in usable]
    return None if any(fits) and scheme.lower() == "bearer" else "wrong_secret"


def _usable(entry: Any) -> list[str]:
    """The secrets, one text or a list while a rotation overlaps; what is too short to be one is none."""
    listed = entry if isinstance(entry, list) else [entry]
    texts = [one.strip() for one in listed if isinstance(one, str)]
    return [one for one in texts if len(one) >= MIN_CHARS]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
