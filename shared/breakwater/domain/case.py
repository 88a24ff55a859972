"""What does a decision look at, and what does it say? Two frozen values, so that rules are functions between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from breakwater.domain import events as ev
from breakwater.domain.job import Job
from breakwater.domain.places import place
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Catalogue, Route, RouteView
from breakwater.domain.signals import Signal
from breakwater.domain.states import Lane, Reason
from breakwater.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseRoute:
    """Nobody calls this route before `until`; where `credential` is set, no route that uses it (one alert for all)."""

    route_key: str
    until: int
    reason: str
    credential: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One event (None: nothing is left to do), whether this process goes on at once, and what others must know."""

    event: ev.Event | None
    why: str
    retry_now: bool = False
    close: CloseRoute | None = None

    @property
    def action(self) -> str:
        """The decision in one word, for people, logs and metrics."""
        if self.retry_now:
            return "retry_now"
        return "drop" if self.event is None else ACTIONS[type(self.event)]

    @property
    def reason(self) -> Reason | None:
        """The reason of the event."""
        return getattr(self.event, "reason", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a rule asks of a retry: the least wait, its reason, whether it may double the last call, what to close."""

    floor: int = 0
    reason: Reason | None = None
    duplicate: bool = False
    close: CloseRoute | None = None


ACTIONS: Mapping[type, str] = {
    ev.RetryScheduled: "queue",
    ev.FellBack: "fallback",
    ev.HeldForReview: "fail_closed",
    ev.DeadLettered: "fail_closed",
    ev.Expired: "fail_closed",
    ev.PollAgain: "poll",
    ev.Cancelled: "cancel",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything a decision depends on. Clock and dice are in it.

    `asking`: the signal answers our question about a provider job, it does not say that the job failed.
    """

    job: Job
    signal: Signal
    policy: Policy
    catalogue: Catalogue
    route: Route
    now: int
    draw: float
    in_run: bool
    asking: bool
    call_ms: int
    states: Mapping[str, RouteView] = field(default_factory=dict)

    @property
    def hint(self) -> int | None:
        """The provider's wait in ms; zero, negative and absent ones are none."""
        wait = self.signal.retry_after_ms
        return wait if wait is not None and wait > 0 else None

    @property
    def safe(self) -> bool:
        """Whether a second call does no harm: frozen when the job was admitted."""
        return self.job.side_effects == "none"

    def closed_for(self, reason: Reason) -> bool:
        """Whether the policy ends the matter here: no further call, neither a retry nor a fallback."""
        return reason.value in self.policy.fail_closed_when


def rest(case: Case, reason: Reason, why: str, close: CloseRoute | None = None) -> Decision:
    """Fail closed: no further call; the job rests where the reason belongs, the caller is told now."""
    event: ev.Event
    if place(reason, case.policy) is Lane.OWNER_REVIEW:
        until = case.now + case.policy.review_max_age_ms
        event = ev.HeldForReview(reason=reason, review_expires_at=until, signal=case.signal)
    else:
        event = ev.DeadLettered(reason=reason, signal=case.signal)
    return Decision(event=event, why=why, close=close)
