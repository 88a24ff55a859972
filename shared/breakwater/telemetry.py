"""How does a function tell what it did? One JSON line per thing, metrics in the CloudWatch embedded format beside it.

Only ids, classes, counts and times are told; no prompt, answer, key or provider message ever gets here. Metric
dimensions are route, workflow and lane; never an owner.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from breakwater.domain.job import Job
from breakwater.domain.states import Reason, Status

NAMESPACE = "Breakwater"
_HTTP_TOO_MANY = 429
_HTTP_SERVER = 500
Metric = tuple[str, float, str]


class JsonLog:
    """`ports.Log` as JSON lines on standard output, which Lambda ships to the function's own log group."""

    def __init__(
        self, now: Callable[[], int], stream: TextIO | None = None, namespace: str = NAMESPACE, **always: Any
    ) -> None:
        self._now, self._stream, self._namespace, self._always = now, stream, namespace, always

    def bind(self, **always: Any) -> None:
        """Fields that every following line carries (request ids, the function's name)."""
        self._always |= always

    def step(self, event: str, before: Job | None, job: Job, **more: Any) -> None:
        """One line per write, with the metrics that follow from it."""
        execution = job.execution or (before.execution if before else None)
        line = {
            "event": event,
            "job_id": job.job_id,
            "workflow": job.workflow,
            "lane": job.lane.value,
            "status": job.status.value,
            "reason": job.reason.value,
            "generation": job.generation,
            "attempt": job.attempt,
            "lease_epoch": job.lease_epoch,
            "rev": job.rev,
            "route_key": job.route_key,
            "from_status": before.status.value if before else None,
            "owed": sorted(job.owed),
            "request_id": job.request_id,
            "pid": os.getpid(),
        }
        if execution is not None:
            line |= {
                "execution_id": execution.id,
                "message_id": execution.message_id,
                "provider_job_id": execution.provider_job_id,
                "provider_request_id": execution.provider_request_id,
            }
        self._write({**line, **more}, step_metrics(event, before, job))

    def note(self, name: str, **more: Any) -> None:
        """One line for something else."""
        self._write({"event": name, **more}, note_metrics(name, more))

    def _write(self, line: Mapping[str, Any], metrics: list[Metric]) -> None:
        told = {name: value for name, value in {**self._always, **line}.items() if value is not None}
        if metrics:
            told |= embedded(metrics, told, self._now(), self._namespace)
        stream = self._stream or sys.stdout
        stream.write(json.dumps({"at": self._now(), **told}, separators=(",", ":"), default=str) + "\n")
        stream.flush()


def embedded(metrics: list[Metric], line: Mapping[str, Any], now: int, namespace: str = NAMESPACE) -> dict[str, Any]:
    """The `_aws` block and values of the embedded metric format, by route, workflow and lane where known."""
    dimensions = [name for name in ("workflow", "lane", "route_key") if line.get(name)]
    block = {
        "Timestamp": now,
        "CloudWatchMetrics": [
            {
                "Namespace": namespace,
                "Dimensions": [[], dimensions] if dimensions else [[]],
                "Metrics": [{"Name": name, "Unit": unit} for name, _, unit in metrics],
            }
        ],
    }
    return {"_aws": block, **{name: value for name, value, _ in metrics}}


def step_metrics(event: str, before: Job | None, job: Job) -> list[Metric]:
    """What a transition adds to the trends. Derived here once, not sprinkled through the code."""
    found: list[Metric] = []
    if event == "Admitted":
        found.append(("Admitted", 1, "Count"))
    if event == "Leased" and before is not None:
        found.append(
            ("QueueWait", max(0, job.updated_at - max(before.ready_at, before.round_started_at)), "Milliseconds")
        )
        found.append(("Attempts", 1, "Count"))
        if job.slots:  # the lowest free number is taken, so the highest one held tells how many are in use
            found.append(("SlotsInUse", max(slot.n for slot in job.slots) + 1, "Count"))
        if before.retry_after_ms is not None and before.status is Status.FAILED:
            found.append(("HintObeyedBy", job.updated_at - before.ready_at, "Milliseconds"))
    if event in ("RetryScheduled", "FellBack", "DeadLettered", "HeldForReview"):
        found += _provider_metrics(job)
    if event == "HeldForReview" and job.reason is not Reason.APPROVAL_REQUIRED:  # which is the policy's own wish
        found.append(("JobsHeld", 1, "Count"))
    if event == "Swept" and job.nudges > 1:
        found.append(("NudgeUnanswered", 1, "Count"))
    if job.final and before is not None and not before.final:
        found += _final_metrics(job)
    return found


def _provider_metrics(job: Job) -> list[Metric]:
    status = job.http_status or 0
    found: list[Metric] = []
    if status == _HTTP_TOO_MANY:
        found.append(("Provider429", 1, "Count"))
    if status >= _HTTP_SERVER:
        found.append(("Provider5xx", 1, "Count"))
    return found


def _final_metrics(job: Job) -> list[Metric]:
    """Who was cancelled neither succeeded nor failed, so the average of `Succeeded` is the success rate."""
    cancelled = job.status is Status.CANCELLED
    rate: list[Metric] = [] if cancelled else [("Succeeded", 1 if job.status is Status.SUCCEEDED else 0, "Count")]
    return [
        *rate,
        ("Finished", 0 if cancelled else 1, "Count"),
        ("DeadLetters", 1 if job.status is Status.DEAD_LETTER else 0, "Count"),
        ("CostMicros", job.cost_micros, "None"),
        ("TimeToFinal", job.updated_at - job.created_at, "Milliseconds"),
    ]


_COUNTED: Mapping[str, str] = {
    "lease_expired": "LeaseExpired",
    "nudge_lost": "NudgeLost",
    "delivery_refused": "DeliveryRefused",
    "effect_given_up": "EffectGivenUp",
    "notified": "Notified",
    "notification_failed": "NotificationFailed",
    "notification_given_up": "NotificationGivenUp",
    "budget_soft_exceeded": "BudgetSoftExceeded",
    "budget_exhausted": "BudgetExhausted",
    "unreadable_message": "UnreadableMessage",
    "route_closed": "RouteClosed",
    "late_write": "LateWrite",
    "audit_line_lost": "AuditLineLost",
    "request_failed": "ApiFailed",
    "request_crashed": "ApiFailed",
    "swept": "SweepRan",
}


_OF_THE_ACCOUNT = frozenset({"credential", "permission", "quota", "spend"})  # nothing but a person helps

_TICKED: Mapping[str, str] = {
    "created": "ScheduledJobs",
    "passed_over": "WindowsPassedOver",
    "failed": "SchedulesFailed",
}


def note_metrics(name: str, more: Mapping[str, Any]) -> list[Metric]:
    """What other lines add to the trends."""
    found: list[Metric] = [(_COUNTED[name], 1, "Count")] if name in _COUNTED else []
    if name == "route_closed" and more.get("reason") in _OF_THE_ACCOUNT:
        found.append(("AccountRefused", 1, "Count"))
    if name == "ticked":
        found += [(_TICKED[kind], float(count), "Count") for kind, count in more.items() if kind in _TICKED]
    if name == "delivery_refused" and more.get("why") == "missing_id":
        found.append(("DeliveryWithoutId", 1, "Count"))
    if name == "delivery_processed":
        found.append(("WebhookDelay", float(more.get("delay_ms", 0)), "Milliseconds"))
    if name == "delivery_taken" and more.get("verdict") == "conflicting":
        found.append(("DeliveryConflict", 1, "Count"))
    if name == "route_limit" and more.get("limit") is not None:
        found.append(("RouteLimit", float(more["limit"]), "None"))
    if name == "swept":
        found += [("Swept_" + kind, float(count), "Count") for kind, count in more.items()]
    return found
