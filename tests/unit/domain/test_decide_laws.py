"""What must hold for every job, signal, policy, moment and draw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from breakwater.domain import events as ev
from breakwater.domain.budget import PEOPLE_WAIT, attempts_on_route
from breakwater.domain.case import Decision
from breakwater.domain.contract import Verdict, check, needs_of, verdict
from breakwater.domain.decide import decide
from breakwater.domain.job import Job
from breakwater.domain.machine import advance
from breakwater.domain.places import place
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Catalogue, Route, RouteView
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import FINAL, Lane, Reason, Status, Visibility
from breakwater.domain.timing import RESPONSE_RESERVE
from tests.support.cases import ALL_CAN, NOW, fallback, make_catalogue, make_job, make_policy, make_route

DAY = 86_400_000
LANES = [
    {"interactive_admission": {}},
    {"background_retry": {}},
    {"interactive_admission": {}, "background_retry": {}},
    {"interactive_admission": {}, "stream_recovery": {}, "background_retry": {"max_attempts": 1}},
]
FALLBACKS = [[], [fallback()], [fallback(max_attempts=2), fallback("third")]]
PRICES = [{"input": 1, "output": 1}, {"input": 10**9, "output": 1}, None]
FAIL_CLOSED = (
    (),
    ("partial_output_committed",),
    ("retry_after_exceeds_deadline",),
    ("deadline_exceeded",),
    ("quota_or_spend_exhausted", "data_boundary_mismatch"),
    ("max_attempts_exhausted",),
    ("outcome_unknown",),
    ("fallback_contract_mismatch",),
    ("fallback_contract_unknown",),
    (
        "retry_after_exceeds_deadline",
        "partial_output_committed",
        "quota_or_spend_exhausted",
        "fallback_contract_mismatch",
    ),
)


@dataclass(frozen=True)
class World:
    """Everything one decision depends on, and the decision."""

    job: Job
    signal: Signal
    policy: Policy
    catalogue: Catalogue
    draw: float
    in_run: bool
    asking: bool
    states: dict[str, RouteView]

    def decide(self) -> Decision:
        """Ask."""
        route = self.catalogue.route(self.job.route_key)
        assert route is not None
        return decide(
            self.job,
            self.signal,
            self.policy,
            self.catalogue,
            route,
            NOW,
            self.draw,
            in_run=self.in_run,
            asking=self.asking,
            route_states=self.states,
        )

    @property
    def visible(self) -> bool:
        """Whether part of the answer was seen."""
        return self.signal.visibility_state is Visibility.PARTIAL_OUTPUT or self.job.partial_output_committed


@cache
def policy_with(  # noqa: PLR0913, PLR0917 - a key of the cache
    lanes,
    mode,
    side_effects,
    fallbacks,
    cap,
    approval,
    at_once,
    closed,
    allowed,
) -> Policy:
    """A policy, built once."""
    return make_policy(
        lanes=LANES[lanes],
        mode=mode,
        side_effects=side_effects,
        fallbacks=FALLBACKS[fallbacks],
        quality_tier="standard",
        cost_cap_micros=cap,
        output_contract={"tools": True},
        fallback_needs_approval=approval,
        retry_now_max_ms=at_once,
        strategy={"fail_closed_when": closed, "fallback": {"allowed_before_first_token": allowed}},
    )


@cache
def target_with(
    key,
    tools,
    tier,
    region,
    credential,
    prices,
) -> Route:
    """A fallback route, built once."""
    return make_route(
        key,
        capabilities={**ALL_CAN, "tools": tools},
        quality_tier=tier,
        region=region,
        credential=credential,
        prices=PRICES[prices],
    )


@cache
def own_route(webhook) -> Route:
    """The workflow's own route, built once."""
    return make_route(capabilities={**ALL_CAN, "background": True, "webhook": webhook})


class Choices:
    """Takes one option a byte: a single cheap draw stands for thirty, and still shrinks to the first options."""

    def __init__(self, raw: bytes) -> None:
        self._raw = iter(raw)

    def __call__(self, *options):
        return options[next(self._raw) % len(options)]


def policy_of(take: Choices) -> Policy:
    """Any policy."""
    return policy_with(
        take(0, 1, 2, 3),
        take("sync", "background"),
        take("none", "none", "paid", "external"),
        take(0, 1, 2),
        take(None, 20_000),
        take(False, False, True),
        take(2_000, 0),
        take(*FAIL_CLOSED),
        take(True, True, False),
    )


def target_of(key: str, take: Choices) -> Route:
    """Any fallback route."""
    return target_with(
        key,
        take(*[True] * 5, False, None),
        take(*["standard"] * 5, "economy", None),
        take(*["us"] * 5, "eu", None),
        take("key-other", "key-other", "key-first"),
        take(0, 0, 0, 0, 1, 2),
    )


def job_of(policy: Policy, take: Choices) -> Job:
    """Any job of the policy."""
    present = take(None, None, None, None, *policy.fallbacks)
    before = take(0, 1, 2, 3, 4) if present else 0
    lane = take(Lane.INTERACTIVE_ADMISSION, Lane.STREAM_RECOVERY, Lane.BACKGROUND_RETRY)
    return make_job(
        policy,
        lane,
        attempt=before + take(1, 1, 1, 1, 1, 1, 2, 2, 4, 5, 6),
        attempts_before_route=before,
        route_key=present.route if present else "first",
        fallback_allowed=present.name if present else None,
        status=take(*[Status.PROCESSING] * 29, Status.SUCCEEDED),
        expires_at=take(None, NOW, NOW + 1, NOW + 400, NOW + 60_000, *[NOW + 3 * DAY] * 6),
        deadline_at=take(None, NOW - 1, NOW, NOW + 5_300, NOW + 24_000, NOW + 24_001),
        partial_output_committed=take(*[False] * 19, True),
        cancel_requested_at=take(*[None] * 29, NOW),
        stream=take(False, True),
        key_given=take(True, True, False),
        provider_job_id=take(None, "resp_1"),
        polls=take(0, 1, 7, 50),
        provider_deadline_at=take(None, NOW, NOW + DAY),
    )


def signal_of(job: Job, take: Choices) -> Signal:
    """Any signal, the retryable ones more often."""
    retryable = (ErrorClass.PACING, ErrorClass.OVERLOAD, ErrorClass.SERVER_FAULT, ErrorClass.NOT_SENT)
    hints = (0, -5, 1, 1_999, 2_000, 2_001, 30_000, 901_000, 46_800_000, 10**12)
    return Signal(
        error_class=take(*retryable, *ErrorClass, *retryable),
        route_key=job.route_key,
        retry_after_ms=take(*[None] * 10, *hints),
        visibility_state=take(*[Visibility.BEFORE_FIRST_TOKEN] * 15, *Visibility),
    )


def world_of(raw: bytes, draw: float) -> World:
    """Everything a decision depends on, out of bytes."""
    take = Choices(raw)
    policy = policy_of(take)
    job = job_of(policy, take)
    signal = signal_of(job, take)
    catalogue = make_catalogue(own_route(take(None, "openai")), target_of("second", take), target_of("third", take))
    views = (
        RouteView(),
        RouteView(),
        RouteView(limit=0),
        RouteView(closed_until=NOW - 1),
        RouteView(closed_until=NOW + 3_000),
        RouteView(closed_until=NOW + DAY),
    )
    return World(
        job,
        signal,
        policy,
        catalogue,
        draw,
        take(False, True),
        take(*[False] * 9, True),
        {"second": take(*views), "third": take(*views)},
    )


WORLDS = st.builds(
    world_of,
    st.binary(min_size=60, max_size=60),
    st.sampled_from([0.0, 0.25, 0.5, 0.999999]),
)


def at_the_end(world: World) -> World:
    """The same world where only a fallback can help: attempts gone, and approved fallbacks there."""
    approved = make_policy(fallbacks=FALLBACKS[2], lanes=LANES[2]).fallbacks
    policy = replace(world.policy, fallbacks=approved)
    job = world.job.with_(
        lane=Lane.BACKGROUND_RETRY,
        attempt=policy.lane(Lane.BACKGROUND_RETRY).max_attempts,
        attempts_before_route=0,
        route_key="first",
        fallback_allowed=None,
        expires_at=NOW + DAY,
    )
    return replace(world, policy=policy, job=job, asking=False)


def law(test):
    """Enough examples to meet every rule of every kind of policy many times."""
    return settings(max_examples=300, deadline=None)(given(world=WORLDS | WORLDS.map(at_the_end))(test))


@law
def test_it_is_total_and_closed(world):
    """Always one decision, and its event is one the machine accepts for a job in process."""
    decision = world.decide()

    assert decision.why
    if decision.event is None:
        assert world.job.status in FINAL
    else:
        advance(world.job, decision.event, NOW)


@law
def test_it_is_pure(world):
    """Same inputs, same decision."""
    assert world.decide() == world.decide()


@law
def test_nothing_is_scheduled_in_the_past(world):
    """Every time it names is now or later."""
    decision = world.decide()

    for name in ("at", "review_expires_at"):
        assert getattr(decision.event, name, NOW) >= NOW
    assert decision.close is None or decision.close.until > NOW


@law
def test_after_visible_output_no_call_is_made(world):
    """Neither a retry nor a fallback."""
    event = world.decide().event

    if world.visible and not world.asking:
        assert not isinstance(event, ev.RetryScheduled | ev.FellBack | ev.PollAgain)


@law
def test_the_providers_hint_is_a_floor(world):
    """Nobody is scheduled earlier on this route, and the route itself stays closed as long."""
    decision, hint = world.decide(), world.signal.retry_after_ms

    if hint and hint > 0:
        if isinstance(decision.event, ev.RetryScheduled | ev.PollAgain):
            assert decision.event.at >= NOW + hint
        if decision.close:
            assert decision.close.until >= NOW + hint
    if isinstance(decision.event, ev.RetryScheduled) and decision.reason is Reason.PROVIDER_WAIT_HINT:
        assert decision.event.at == NOW + (hint or 0)


@law
def test_no_call_begins_past_a_deadline_or_an_age(world):
    """In the lane where it would run; while a person waits it also ends in time."""
    event = world.decide().event

    if isinstance(event, ev.RetryScheduled | ev.FellBack):
        lane = getattr(event, "lane", None) or world.job.lane
        assert world.job.expires_at is None or event.at < world.job.expires_at
        if lane in PEOPLE_WAIT and world.job.deadline_at is not None:
            assert event.at + world.policy.min_call_ms + RESPONSE_RESERVE <= world.job.deadline_at


@law
def test_no_call_is_made_beyond_the_attempts(world):
    """Of the route's own budget, and of the generation's total."""
    event, policy, job = world.decide().event, world.policy, world.job

    if isinstance(event, ev.RetryScheduled):
        lane = event.lane or job.lane
        present = policy.approved_fallback(job.fallback_allowed)
        budget = present.max_attempts if present else policy.lane(lane).max_attempts
        assert attempts_on_route(job) < budget
        assert job.attempt < policy.total_attempts(lane)
    if isinstance(event, ev.FellBack):
        assert job.attempt < policy.total_attempts(job.lane)


@law
def test_retry_now_is_rare(world):
    """Only in `/run`, while a person waits, before visible output, and only after a short wait."""
    decision = world.decide()

    if decision.retry_now:
        assert isinstance(decision.event, ev.RetryScheduled)
        assert world.in_run
        assert not world.visible
        assert (decision.event.lane or world.job.lane) in PEOPLE_WAIT
        assert decision.event.at - NOW <= world.policy.retry_now_max_ms


@law
def test_it_never_falls_back_on_a_contract_that_does_not_hold(world):
    """Every clause true, approved by name, open, forward in the list, and allowed at all."""
    event = world.decide().event

    if isinstance(event, ev.FellBack):
        target, origin = world.catalogue.route(event.route_key), world.catalogue.route("first")
        assert target is not None
        assert origin is not None
        found = check(world.policy, origin, target, needs_of(world.policy, stream=world.job.stream))
        assert verdict(found) is Verdict.HOLDS
        assert event.clauses == found
        approved = world.policy.approved_fallback(event.fallback)
        assert approved is not None
        assert approved.route == event.route_key != world.job.route_key
        assert world.policy.may_fall_back
        assert not world.policy.fallback_needs_approval
        assert event.reason.value not in world.policy.fail_closed_when
        assert event.at == world.states[event.route_key].opens_at(NOW)
        names = [one.name for one in world.policy.fallbacks]
        if world.job.fallback_allowed:
            assert names.index(event.fallback) > names.index(world.job.fallback_allowed)


@law
def test_quota_and_spend_never_become_a_timed_retry(world):
    """Another account or a person, never time."""
    event = world.decide().event

    if world.signal.error_class in (ErrorClass.QUOTA, ErrorClass.SPEND) and not world.asking:
        assert not isinstance(event, ev.RetryScheduled | ev.PollAgain)
        if isinstance(event, ev.FellBack):
            target, route = world.catalogue.route(event.route_key), world.catalogue.route(world.job.route_key)
            assert target is not None
            assert route is not None
            assert target.credential != route.credential


@law
def test_what_is_not_safe_is_not_repeated_after_an_unknown_outcome(world):
    """Held, or at rest; never called again unasked, on any route."""
    event = world.decide().event

    unknown = world.signal.error_class in (ErrorClass.OUTCOME_UNKNOWN, ErrorClass.STREAM_INCOMPLETE, ErrorClass.UNKNOWN)
    if unknown and not world.asking and world.job.side_effects != "none":
        assert not isinstance(event, ev.RetryScheduled | ev.FellBack)


@law
def test_a_possible_duplicate_is_marked_and_nothing_else_is(world):
    """Exactly the calls that follow an unknown outcome."""
    event = world.decide().event

    if isinstance(event, ev.RetryScheduled | ev.FellBack):
        unknown = world.signal.error_class in (
            ErrorClass.OUTCOME_UNKNOWN,
            ErrorClass.STREAM_INCOMPLETE,
            ErrorClass.UNKNOWN,
            ErrorClass.NOT_FOUND,
        )
        assert event.possible_duplicate is unknown


@law
def test_a_job_rests_where_its_reason_belongs(world):
    """Held exactly if the table or the policy says owner review."""
    event = world.decide().event

    if isinstance(event, ev.HeldForReview):
        assert place(event.reason, world.policy) is Lane.OWNER_REVIEW
    if isinstance(event, ev.DeadLettered):
        assert place(event.reason, world.policy) is Lane.DEAD_LETTER


@law
def test_what_fails_closed_makes_no_further_call(world):
    """A listed reason is never the reason of a call."""
    decision = world.decide()

    if isinstance(decision.event, ev.RetryScheduled | ev.FellBack) and decision.reason:
        assert decision.reason.value not in world.policy.fail_closed_when


@law
def test_a_move_to_the_background_is_promised_and_possible(world):
    """Only where the policy has the lane and the outcome is known."""
    event = world.decide().event

    if isinstance(event, ev.RetryScheduled) and event.lane is Lane.BACKGROUND_RETRY:
        assert world.job.lane in PEOPLE_WAIT
        assert world.policy.lanes.background_retry is not None
        assert not event.possible_duplicate
        assert event.max_attempts == world.policy.total_attempts(Lane.BACKGROUND_RETRY)
