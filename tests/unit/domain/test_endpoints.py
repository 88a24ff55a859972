"""Webhook endpoints are configuration: where things stand in a body, and what an event means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from breakwater.domain.endpoint_entries import EndpointEntry, ResultEntry, load_endpoints
from breakwater.domain.endpoints import DeliveryFacts, Outcome, endpoints_of, read, secrets_of, unusable_of
from breakwater.domain.errors import InvalidPolicy
from breakwater.domain.signature import STANDARD, HeaderNames

SHIPPED = yaml.safe_load(Path("shared/policies/endpoints.yaml").read_text(encoding="utf-8"))
ENDPOINTS = load_endpoints(SHIPPED)

MINIMAL = {
    "name": "hooks",
    "provider": "x",
    "secret": "hooks",
    "event_type": "type",
    "provider_job_id": "data.id",
    "outcomes": {"done": "completed"},
}


TOLD = {"fetch": False, "result": {"text": "text"}}


def endpoint(**changes):
    """One endpoint from plain data."""
    return load_endpoints({"endpoints": [MINIMAL | changes]})["hooks"]


class TestShipped:
    @pytest.mark.parametrize(
        ("name", "body", "facts"),
        [
            (
                "openai",
                {"id": "evt_1", "type": "response.completed", "data": {"id": "resp_1"}},
                DeliveryFacts("response.completed", "resp_1", None, None, Outcome.COMPLETED),
            ),
            (
                "openai",
                {"type": "response.in_progress", "data": {"id": "resp_1", "metadata": {"breakwater_job_id": "job_1"}}},
                DeliveryFacts("response.in_progress", "resp_1", "job_1", None, Outcome.PROGRESS),
            ),
            (
                "openai",
                {"type": "fine_tuning.job.failed", "data": {"id": "ft_1"}},
                DeliveryFacts("fine_tuning.job.failed", "ft_1", None, None, Outcome.IGNORE),
            ),
            (
                "gemini",
                {
                    "type": "batch.expired",
                    "data": {"name": "batches/1"},
                    "user_metadata": {"breakwater_execution_id": "j.1.1.1"},
                },
                DeliveryFacts("batch.expired", "batches/1", None, "j.1.1.1", Outcome.FAILED),
            ),
            (
                "gateway",
                {"event": "image.canceled", "id": 17},
                DeliveryFacts("image.canceled", "17", None, None, Outcome.CANCELLED),
            ),
            (
                "media",
                {"id": "ufaw", "status": "succeeded", "output": ["https://…"]},
                DeliveryFacts("succeeded", "ufaw", None, None, Outcome.COMPLETED),
            ),
        ],
    )
    def test_events_of_the_shipped_endpoints_are_understood(self, name, body, facts):
        """One example a sender, as its documentation shows it."""
        assert read(ENDPOINTS[name], body) == facts

    def test_every_outcome_can_be_said(self):
        """No outcome is dead vocabulary but `ignore`, which is the default."""
        said = {outcome for one in ENDPOINTS.values() for outcome in one.outcomes.values()}

        assert said | {Outcome.IGNORE} == set(Outcome)

    def test_the_compiled_form_loads_the_same(self):
        """JSON made from the models is the same configuration, in a list of its own too."""
        compiled = json.loads(json.dumps(SHIPPED["endpoints"]))

        assert endpoints_of(compiled) == load_endpoints(compiled) == ENDPOINTS
        assert ENDPOINTS["openai"].names == STANDARD


def test_our_ids_are_looked_for_under_the_names_that_adapters_send():
    """A path to another name would never find the job of an early delivery."""
    adapter = Path("shared/breakwater/providers/openai_responses.py").read_text(encoding="utf-8")

    for one in ENDPOINTS.values():
        for paths in (one.job_id, one.execution_id):
            assert all(f'"{path.rpartition(".")[2]}"' in adapter for path in paths)


class TestGuide:
    def test_the_example_of_the_guide_is_a_valid_entry(self):
        """Both of its parts together; and it names every key that an entry and its result may have."""
        page = Path("docs/how-to/webhooks.md").read_text(encoding="utf-8")
        blocks = [part.split("```")[0] for part in page.split("```yaml\n")[1:]]

        entry = load_endpoints(yaml.safe_load("".join(blocks)))["prediction"]

        assert entry.result is not None
        assert entry.outcome("canceled") is Outcome.CANCELLED
        keys = {*EndpointEntry.model_fields, *ResultEntry.model_fields} - {"description"}
        assert [key for key in sorted(keys) if key not in page] == []

    def test_without_its_second_part_it_is_fetched(self):
        """The news alone, and the provider is asked."""
        page = Path("docs/how-to/webhooks.md").read_text(encoding="utf-8")

        assert load_endpoints(yaml.safe_load(page.split("```yaml\n")[1].split("```")[0]))["prediction"].fetch


class TestReading:
    @pytest.mark.parametrize("body", [None, [], {}, "text", 7, True, {"type": None}, {"type": ["x"]}, {"data": []}])
    def test_any_json_is_read(self, body):
        """A body of another shape says nothing, and breaks nothing."""
        assert read(endpoint(), body) == DeliveryFacts("unknown", None, None, None, Outcome.IGNORE)

    @pytest.mark.parametrize("value", ["", "x" * 257, "a\nb", "\x00", True, 1.5, 2**63, {}, []])
    def test_what_is_no_short_word_is_no_id(self, value):
        """Ids become parts of keys and logs: short, printable text or a whole number."""
        assert read(endpoint(), {"data": {"id": value}}).provider_job_id is None

    def test_numbers_in_a_path_are_places_in_a_list(self):
        """A list is walked by place; a place that is not there is nothing."""
        paths = ["items.9.id", "items.x.id", "items.1.id"]

        assert read(endpoint(provider_job_id=paths), {"items": [{}, {"id": "b"}]}).provider_job_id == "b"

    def test_the_first_path_that_holds_something_counts(self):
        """Alternatives are tried in order."""
        one = endpoint(job_id=["data.job", "job"])

        assert read(one, {"job": "outer", "data": {"job": "inner"}}).job_id == "inner"
        assert read(one, {"job": "outer", "data": {"job": ""}}).job_id == "outer"

    @pytest.mark.parametrize(
        ("event", "outcome"),
        [("a.b.c", "completed"), ("a.b.d", "failed"), ("a.z", "cancelled"), ("z", "progress"), ("A.b.c", "progress")],
    )
    def test_the_closest_line_wins(self, event, outcome):
        """Exact names win over patterns, long patterns over short ones, wherever they stand; case matters."""
        one = endpoint(outcomes={"*": "progress", "a.*": "cancelled", "a.b.*": "failed", "a.b.c": "completed"})

        assert one.outcome(event) == outcome


class TestConfiguration:
    def test_header_names_are_configured(self):
        """They are compared in lower case."""
        headers = {"id": "Svix-Id", "timestamp": "Svix-Timestamp", "signature": "Svix-Signature"}

        assert endpoint(headers=headers).names == HeaderNames("svix-id", "svix-timestamp", "svix-signature")

    @pytest.mark.parametrize(
        ("entry", "secrets"),
        [
            ("one", ("one",)),
            (["new", "old"], ("new", "old")),
            (["new", None, 7], ("new",)),
            (None, ()),
            ({"a": 1}, ()),
        ],
    )
    def test_secrets_are_one_text_or_a_list(self, entry, secrets):
        """A rotation puts the new secret in front of the old one."""
        assert secrets_of(endpoint(), {"hooks": entry, "other": "x"}) == secrets

    @pytest.mark.parametrize(
        ("entry", "named"),
        [
            ("long-enough-by-now", []),
            (["long-enough-by-now", "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="], []),
            ("", ["hooks"]),
            (None, ["hooks"]),
            ([], ["hooks"]),
            ({"a": 1}, ["hooks"]),
            (["long-enough-by-now", "whsec_***", None, 7], ["hooks[1]", "hooks[2]", "hooks[3]"]),
        ],
    )
    def test_unusable_secrets_are_named_by_place(self, entry, named):
        """Whoever repairs the secret learns where, and nobody reads what."""
        assert unusable_of(endpoint(), {"hooks": entry}) == named

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"tolerance_s": 0}, "endpoints[0].tolerance_s"),
            ({"outcomes": {"done": "finished"}}, "endpoints[0].outcomes.done"),
            ({"outcomes": {}}, "endpoints[0].outcomes"),
            ({"event_type": "a..b"}, "endpoints[0].event_type[0]"),
            ({"event_type": []}, "endpoints[0].event_type"),
            ({"provider_job_id": []}, "endpoints[0]"),
            ({"secrets": "x"}, "endpoints[0].secrets"),
            ({"headers": {"ids": "x"}}, "endpoints[0].headers.ids"),
        ],
    )
    def test_a_wrong_entry_is_refused_with_its_path(self, change, field):
        """The author learns where it is wrong."""
        with pytest.raises(InvalidPolicy) as refused:
            load_endpoints({"endpoints": [MINIMAL | change]})

        assert refused.value.field == field
        assert str(refused.value).startswith(field)

    def test_an_endpoint_that_is_never_asked_needs_a_way_to_the_job(self):
        """Our own ids, or the provider's id where it can't return them."""
        by_metadata = {"provider_job_id": [], "job_id": "meta.job", "execution_id": "meta.execution"}

        assert endpoint(**TOLD, **by_metadata).provider_job_id == ()
        assert endpoint(**TOLD).provider_job_id == ("data.id",)

    def test_the_outcome_may_stand_apart_from_the_event(self):
        """One kind of event, and the word that counts inside the job."""
        one = endpoint(state="data.status")
        facts = read(one, {"type": "job.updated", "data": {"id": "j", "status": "done"}})

        assert facts == DeliveryFacts("job.updated", "j", None, None, Outcome.COMPLETED)
        assert read(one, {"type": "done", "data": {}}).outcome is Outcome.IGNORE

    @pytest.mark.parametrize(
        ("change", "field", "says"),
        [
            ({"fetch": False}, "endpoints[0].result", "is missing: fetch: false needs the paths"),
            ({"result": {"text": "text"}}, "endpoints[0].result", "only with fetch: false; set that, or remove"),
            ({"fetch": False, "result": {}}, "endpoints[0].result", "neither text nor media; add the path"),
            ({"fetch": False, "result": {"txt": "a"}}, "endpoints[0].result.txt", "did you mean text?"),
            ({"fetch": False, "result": {"text": "a..b"}}, "endpoints[0].result.text[0]", "must match"),
            ({"fetch": False, "result": {"media": "m", "mime": "png"}}, "endpoints[0].result.mime", "must match"),
            ({"fetch": False, "result": {"text": "t"}, "provider_job_id": []}, "endpoints[0]", "a way to the job: add"),
            (
                {"fetch": False, "result": {"text": "t"}, "provider_job_id": [], "job_id": "meta.job"},
                "endpoints[0]",
                "add job_id and execution_id",
            ),
        ],
    )
    def test_a_result_that_could_not_be_read_is_refused(self, change, field, says):
        """Field, rule and fix, before the first paid answer is lost."""
        with pytest.raises(InvalidPolicy) as refused:
            load_endpoints({"endpoints": [MINIMAL | change]})

        assert refused.value.field == field
        assert says in str(refused.value)

    def test_every_problem_of_a_file_is_told_at_once(self):
        """Two wrong entries and a name that stands twice are three lines."""
        wrong = [MINIMAL, MINIMAL, MINIMAL | {"name": "No!"}, 7]

        with pytest.raises(InvalidPolicy) as refused:
            load_endpoints({"endpoints": wrong})

        assert [line.split(":")[0] for line in str(refused.value).splitlines()] == [
            "endpoints[1].name",
            "endpoints[2].name",
            "endpoints[3]",
        ]

    @pytest.mark.parametrize("raw", [{"endpoints": {}}, {"endpoints": "x"}, {"endpoints": None}, "x"])
    def test_a_file_without_a_list_is_refused(self, raw):
        """A mapping by name would lose entries that stand twice."""
        with pytest.raises(InvalidPolicy, match="endpoints: must be a list"):
            load_endpoints(raw)

    def test_no_entries_is_a_choice(self):
        """A team without webhooks polls."""
        assert load_endpoints({}) == {}
