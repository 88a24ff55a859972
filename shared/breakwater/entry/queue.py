"""How is an SQS batch worked on? One record at a time, and only what must come again is reported.

A failure is reported for infrastructure faults and bodies that don't parse: the queue brings those back, and its DLQ
ends what never works. Everything a job can do wrong is in the table. A store that was away at every receive is no fault
of the job's: the last of them is let go, for what it asked for has its own `due_at`, and a message in the DLQ counts as
a crash. The answer holds each id of this batch at most once, and nothing from an earlier batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from breakwater.domain.errors import BreakwaterError, Conflict, Unavailable
from breakwater.domain.nudges import parse_nudge
from breakwater.ports import Log

Work = Callable[[str, str, dict[str, Any]], None]
MAX_RECEIVES = 5  # of a message, before its queue hands it to the DLQ; the template says the same


def consume(event: Mapping[str, Any], context: Any, log: Log, work: Work) -> dict[str, Any]:
    """Hand each nudge to `work`; the partial-batch answer in the exact shape of AWS."""
    failed: dict[str, None] = {}
    for record in event.get("Records") or ():
        message_id = record.get("messageId")
        if not _one(record, context, log, work) and message_id:
            failed[message_id] = None
    return {"batchItemFailures": [{"itemIdentifier": one} for one in failed]}


def _one(record: dict[str, Any], context: Any, log: Log, work: Work) -> bool:
    told = {"message_id": record.get("messageId"), "lambda_request_id": getattr(context, "aws_request_id", None)}
    nudge = parse_nudge(record.get("body"))
    if nudge is None:
        log.note("unreadable_nudge", **told)
        return False
    kind, item_id = nudge
    try:
        work(kind, item_id, record)
    except Conflict as error:  # someone else won; what is left to do has its own `due_at`
        log.note("nudge_overtaken", kind=kind, id=item_id, error=type(error).__name__, **told)
    except Unavailable as error:
        last = _receives(record) >= MAX_RECEIVES
        name = "nudge_let_go" if last else "nudge_failed"
        log.note(name, kind=kind, id=item_id, error=type(error).__name__, why=str(error), **told)
        return last
    except BreakwaterError as error:
        log.note("nudge_failed", kind=kind, id=item_id, error=type(error).__name__, why=str(error), **told)
        return False
    except Exception as error:  # noqa: BLE001 - the last line of a batch item: report it, the rest goes on
        log.note("nudge_crashed", kind=kind, id=item_id, error=type(error).__name__, trace=_trace(error), **told)
        return False
    return True


def _receives(record: Mapping[str, Any]) -> int:
    return int((record.get("attributes") or {}).get("ApproximateReceiveCount") or 1)


def _trace(error: BaseException) -> list[str]:
    """Where it happened, without the message or any value: those can quote a prompt."""
    places, current = [], error.__traceback__
    while current is not None:
        code = current.tb_frame.f_code
        places.append(f"{code.co_filename.rsplit('/breakwater/', 1)[-1]}:{current.tb_lineno} {code.co_name}")
        current = current.tb_next
    return places[-8:]
