"""What a policy file may say, and what the policy then answers."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from breakwater.domain.checked import policy_of
from breakwater.domain.policy import QueueDepth
from breakwater.domain.routes import Catalogue
from breakwater.domain.states import Lane, Priority
from tests.support.cases import LANES, fallback, make_policy

TEMPLATE = Path(__file__).parents[2] / "fixtures" / "policies-template.yaml"


def template() -> dict:
    """The file as read."""
    return yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))


def test_the_template_loads_as_written():
    """The customer's template alone is a whole policy, and keeps its numbers."""
    policy = policy_of(template())

    interactive = policy.lanes.interactive_admission
    assert policy.workflow == "support_chat"
    assert (interactive.max_wait_ms, interactive.max_attempts) == (4_000, 2)
    assert interactive.shed_priority_below is Priority.NORMAL
    assert policy.lane(Lane.BACKGROUND_RETRY).max_queue_age_ms == 900_000
    assert policy.lanes.background_retry.require_idempotency_key is True
    assert policy.ai_api_queueing_strategy.backpressure.release_order == ("ready_at", "priority", "created_at")


def test_depth_is_limited_where_it_is_written_and_counted_as_soon_as_anybody_does():
    """Both lanes that admit; the template has none. Read from the compiled form as well, before anybody asks for it."""
    lanes = {"background_retry": {"max_queue_depth": 9, "max_queue_depth_per_owner": 3}}
    deep = policy_of({"workflow": "deep", "ai_api_queueing_strategy": {"lanes": lanes}})
    plain = policy_of(template())
    both = Catalogue(policies={"deep": deep, "support_chat": plain})

    assert deep.depth(Lane.BACKGROUND_RETRY) == QueueDepth(9, 3)
    assert {plain.depth(lane) for lane in Lane} == {QueueDepth()}
    assert both.counts_depth()
    assert not Catalogue(policies={"support_chat": plain}).counts_depth()
    assert Catalogue.load(both.dump()).counts_depth()
    assert not Catalogue.load(Catalogue(policies={"support_chat": plain}).dump()).counts_depth()


def test_every_key_of_the_template_survives_a_round_trip():
    """Nothing the template says is dropped."""
    strategy = template()["ai_api_queueing_strategy"]
    dumped = policy_of(template()).plain()["ai_api_queueing_strategy"]

    assert_within(strategy, dumped)


def assert_within(given, kept) -> None:
    """Everything that was given was kept."""
    if isinstance(given, dict):
        for key, value in given.items():
            assert_within(value, kept[key])
    else:
        assert given == kept


def test_a_policy_cannot_be_changed():
    """A policy is a frozen value."""
    with pytest.raises(FrozenInstanceError):
        make_policy().priority = Priority.HIGH


def test_the_hash_names_the_content():
    """The same content has the same hash, another content another one."""
    assert make_policy().hash == make_policy().hash
    assert len(make_policy().hash) == 16
    assert make_policy().hash != make_policy(manual_retries=2).hash


@pytest.mark.parametrize(("side_effects", "safe"), [("none", True), ("paid", False), ("external", False)])
def test_only_work_without_side_effects_is_safe_to_repeat(side_effects, safe):
    """Paid and external work is not repeated unasked."""
    assert make_policy(side_effects=side_effects).safe_to_repeat is safe


def test_lanes_have_their_own_budgets():
    """Attempts and back-off belong to the lane."""
    policy = make_policy()

    interactive, background = policy.lane(Lane.INTERACTIVE_ADMISSION), policy.lane(Lane.BACKGROUND_RETRY)
    assert (interactive.max_attempts, background.max_attempts) == (2, 5)
    assert (interactive.backoff.base_ms, interactive.backoff.cap_ms, interactive.backoff.min_ms) == (500, 30_000, 250)
    assert (background.backoff.base_ms, background.backoff.cap_ms, background.backoff.min_ms) == (1_000, 60_000, 250)
    assert interactive.max_queue_age_ms == background.max_queue_age_ms == 900_000


def test_people_who_wait_are_not_kept_longer_than_their_deadline():
    """Without a background lane, a job lives as long as its deadline."""
    policy = make_policy(lanes={"interactive_admission": {}}, deadline_ms=20_000)

    assert policy.lane(Lane.INTERACTIVE_ADMISSION).max_queue_age_ms == 20_000


def test_stream_recovery_is_as_patient_as_admission_unless_it_says_otherwise():
    """A lane for broken streams comes with the interactive one and may have its own numbers."""
    own = {**LANES, "stream_recovery": {"max_attempts": 3}}

    assert make_policy().lane(Lane.STREAM_RECOVERY).max_attempts == 2
    assert make_policy(lanes=own).lane(Lane.STREAM_RECOVERY).max_attempts == 3
    assert make_policy().has_lane(Lane.STREAM_RECOVERY)
    assert not make_policy(lanes={"background_retry": {}}).has_lane(Lane.STREAM_RECOVERY)


def test_a_lane_that_is_not_promised_still_has_numbers():
    """A job may stand in a lane its deployed policy no longer has."""
    background = make_policy(lanes={"background_retry": {}})
    interactive = make_policy(lanes={"interactive_admission": {}})

    assert background.lane(Lane.INTERACTIVE_ADMISSION).max_attempts == 2
    assert background.lane(Lane.STREAM_RECOVERY).max_attempts == 2
    assert interactive.lane(Lane.BACKGROUND_RETRY).max_attempts == 5
    assert interactive.lane(Lane.OWNER_REVIEW).max_attempts == 5


def test_a_job_starts_in_the_lane_asked_for_or_the_one_there_is():
    """`/run` starts interactively, other jobs in the background, where the workflow has both."""
    both, one = make_policy(), make_policy(lanes={"background_retry": {}})

    assert both.start_lane(interactive=True) is Lane.INTERACTIVE_ADMISSION
    assert both.start_lane(interactive=False) is Lane.BACKGROUND_RETRY
    assert one.start_lane(interactive=True) is Lane.BACKGROUND_RETRY
    assert make_policy(lanes={"interactive_admission": {}}).start_lane(interactive=False) is Lane.INTERACTIVE_ADMISSION


def test_a_generation_has_the_lanes_attempts_and_those_of_its_fallbacks():
    """Fallbacks have small budgets of their own, inside one total."""
    policy = make_policy(fallbacks=[fallback(max_attempts=2), fallback("third")])

    assert policy.total_attempts(Lane.INTERACTIVE_ADMISSION) == 2 + 2 + 1
    assert policy.total_attempts(Lane.BACKGROUND_RETRY) == 5 + 2 + 1


def test_a_fallback_is_found_by_its_name():
    """The approval is a name, never a boolean."""
    policy = make_policy(fallbacks=[fallback()])

    assert policy.approved_fallback("second").approved_by == "owner"
    assert policy.approved_fallback("nobody") is None
    assert policy.approved_fallback(None) is None


def test_fallbacks_can_be_switched_off_as_a_whole():
    """`allowed_before_first_token: false` means never."""
    off = {"fallback": {"allowed_before_first_token": False}}

    assert make_policy(fallbacks=[fallback()]).may_fall_back
    assert not make_policy(fallbacks=[fallback()], strategy=off).may_fall_back
    assert not make_policy().may_fall_back


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"deadline_ms": 30_000}, "less than or equal to 27000"),
        ({"deadline_ms": 4_000}, "must fit into deadline_ms"),
        ({"retry_now_max_ms": 60_000}, "less than or equal to 5000"),
        ({"priority": "urgent"}, "'low', 'normal' or 'high'"),
        ({"side_effects": "some"}, "'none', 'paid' or 'external'"),
        ({"accept_truncated": "yes"}, "boolean"),
        ({"manual_retries": "3"}, "integer"),
        ({"retention_days": 0}, "greater than or equal to 1"),
        ({"fallbacks": [fallback(), fallback()]}, "names and routes of their own"),
        ({"fallbacks": [fallback(route="first")]}, "names and routes of their own"),
        ({"fallbacks": [fallback(approved_by="")]}, "at least 1"),
        ({"fallbacks": [fallback()], "require_same_served_model": True}, "stay comparable"),
        ({"surprise": 1}, "Unexpected keyword"),
        ({"strategy": {"fail_closed_when": ["sometimes"]}}, "fail_closed_when"),
        ({"strategy": {"classify": {"fields": ["http_status"]}}}, "leaves out"),
        ({"strategy": {"classify": {"fields": ["http_status", "http_status"]}}}, "twice"),
        ({"strategy": {"backpressure": {"concurrency_key": ["weather"]}}}, "concurrency_key"),
        ({"strategy": {"backpressure": {"concurrency_key": ["provider", "provider"]}}}, "twice"),
        ({"strategy": {"backpressure": {"release_order": ["priority", "ready_at"]}}}, "begin with ready_at"),
        ({"lanes": {}}, "needs interactive_admission or background_retry"),
        ({"lanes": {"background_retry": {"max_attempts": 0}}}, "greater than or equal to 1"),
        ({"lanes": {"background_retry": {"backoff": {"base_ms": 10, "min_ms": 20}}}}, "min_ms <= base_ms"),
        ({"lanes": {"background_retry": {}, "owner_review": {"enter_when": ["caller_fault"]}}}, "enter_when"),
        (
            {
                "lanes": {
                    "background_retry": {},
                    "owner_review": {"enter_when": ["outcome_unknown"]},
                    "dead_letter": {"enter_when": ["outcome_unknown"]},
                }
            },
            "owner_review and dead_letter both",
        ),
    ],
)
def test_nonsense_is_refused(change, match):
    """Every closed set is closed and every number has its bounds."""
    with pytest.raises(ValidationError, match=match):
        make_policy(**change)


def test_the_unknown_key_of_any_level_is_refused():
    """A typing error never becomes a default."""
    raw = template()
    raw["ai_api_queueing_strategy"]["lanes"]["background_retry"]["max_atempts"] = 3

    with pytest.raises(ValidationError, match="max_atempts"):
        policy_of(raw)
