"""Do routes and policies fit together? What one file alone can't show. All findings at once, each with its path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from difflib import get_close_matches

from breakwater.domain.contract import Verdict, check, fits_route, needs_of, not_kept, verdict
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Catalogue, Route
from breakwater.domain.telling import carries_result, entry_of
from breakwater.domain.timing import DAY
from breakwater.domain.values import dataclass

STALE_AFTER = timedelta(days=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something wrong (or, as a warning, doubtful) at one key of one workflow's file, or of the routes."""

    path: str
    text: str
    workflow: str | None = None  # None: the file of routes
    warning: bool = False


def findings(catalogue: Catalogue, today: date | None = None) -> tuple[Finding, ...]:
    """Everything that is wrong or doubtful. Without `today` nothing is stale."""
    found: list[Finding] = []
    if catalogue.default_route is not None and catalogue.route(catalogue.default_route) is None:
        text = _no_route(catalogue, catalogue.default_route)
        found.append(Finding(path="default_route", text=text))
    for key in catalogue.route_keys():
        route = catalogue.route(key)
        found.extend(_of_route(catalogue, route, today) if route else ())
    for workflow in catalogue.workflows():
        found.extend(_of_policy(catalogue, catalogue.need_policy(workflow)))
    return tuple(found)


def _no_route(catalogue: Catalogue, key: str) -> str:
    near = get_close_matches(key, catalogue.route_keys(), n=1)
    return f"there is no route {key!r}" + (f"; did you mean {near[0]!r}?" if near else "; add it to the routes")


def _of_route(catalogue: Catalogue, route: Route, today: date | None) -> Iterator[Finding]:
    path, as_of, webhook = f"routes.{route.route_key}", route.catalogue.as_of, route.capabilities.webhook
    if webhook is not None:
        for text in _of_webhook(catalogue, route, webhook):
            yield Finding(path=f"{path}.capabilities.webhook", text=text)
    if today is not None and as_of > today:
        yield Finding(path=f"{path}.catalogue.as_of", text=f"{as_of} is in the future", warning=True)
    elif today is not None and today - as_of > STALE_AFTER:
        text = f"looked up {(today - as_of).days} days ago; check model, prices and limits at {route.catalogue.source}"
        yield Finding(path=f"{path}.catalogue.as_of", text=text, warning=True)
    if route.prices is None:
        yield Finding(path=f"{path}.prices", text="not given: costs on this route stay unknown", warning=True)


def _of_webhook(catalogue: Catalogue, route: Route, name: str) -> Iterator[str]:
    """A result that comes by webhook only must be one that the endpoint can read."""
    entry = entry_of(catalogue, name)
    if entry is None:
        yield f"there is no webhook endpoint {name!r}; add it to the endpoints"
    elif carries_result(entry):
        made = "media" if route.capabilities.media else "text"
        if not (entry.get("result") or {}).get(made):
            yield f"endpoint {name!r} has fetch: false and reads no {made}; add result.{made} to it"
        if not route.capabilities.background:
            yield f"endpoint {name!r} has fetch: false, so it needs background: true; add it, or remove webhook"


def _of_policy(catalogue: Catalogue, policy: Policy) -> Iterator[Finding]:
    name, route = policy.workflow, catalogue.route(policy.route)
    if route is None:
        yield Finding(workflow=name, path="route", text=_no_route(catalogue, policy.route))
    else:
        yield from _of_own_route(policy, route)
    for index, fallback in enumerate(policy.fallbacks):
        path, target = f"fallbacks[{index}].route", catalogue.route(fallback.route)
        if target is None:
            yield Finding(workflow=name, path=path, text=_no_route(catalogue, fallback.route))
        elif route is not None:
            yield from _of_fallback(policy, path, route, target)
    yield from _of_times(policy)


def _of_own_route(policy: Policy, route: Route) -> Iterator[Finding]:
    name = policy.workflow
    if policy.mode == "background" and not route.capabilities.background:
        text = f"background needs a route with capabilities.background, which {route.route_key!r} has not; use sync"
        yield Finding(workflow=name, path="mode", text=text)
    clauses = fits_route(policy, route)
    outcome = verdict(clauses)
    if outcome is not Verdict.HOLDS:
        broken = outcome is Verdict.MISMATCH
        word = "does not keep" if broken else "has not been checked for"
        text = f"{route.route_key!r} {word} {', '.join(not_kept(clauses))}"
        yield Finding(workflow=name, path="route", text=text, warning=not broken)


def _of_fallback(policy: Policy, path: str, route: Route, target: Route) -> Iterator[Finding]:
    clauses = check(policy, route, target, needs_of(policy))
    outcome = verdict(clauses)
    if outcome is not Verdict.HOLDS:
        does = "will never be taken" if outcome is Verdict.MISMATCH else "waits for a person"
        word = "broken" if outcome is Verdict.MISMATCH else "unknown"
        text = f"{target.route_key!r} {does}: {', '.join(not_kept(clauses))} {word}"
        yield Finding(workflow=policy.workflow, path=path, text=text, warning=True)


def _of_times(policy: Policy) -> Iterator[Finding]:
    """A job must be kept longer than it may live."""
    kept = policy.retention_days * DAY
    background = policy.lanes.background_retry
    lengths: Mapping[str, int] = {
        "review_max_age_ms": policy.review_max_age_ms,
        "provider_deadline_ms": policy.provider_deadline_ms,
        "dedupe_window_ms": policy.dedupe_window_ms,
        "ai_api_queueing_strategy.lanes.background_retry.max_queue_age_ms": background.max_queue_age_ms
        if background
        else 0,
    }
    for path, length in lengths.items():
        if length > kept:
            text = f"must be <= retention_days ({policy.retention_days} days = {kept} ms), got {length}"
            yield Finding(workflow=policy.workflow, path=path, text=text)
