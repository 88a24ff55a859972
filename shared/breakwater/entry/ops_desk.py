"""Operators' requests about everything that is no job: keys, owners, switches, routes, audit, usage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from breakwater.domain.audit import month_of
from breakwater.domain.errors import InvalidRequest
from breakwater.domain.replay import Short, Text, Why, read
from breakwater.entry.http import json_body, response
from breakwater.entry.ops_request import cursor, limit, page, query, rows
from breakwater.usecases import operate, operate_keys, operate_routes, operate_switches
from breakwater.usecases.audit import Desk, entries
from breakwater.usecases.usage import usage

Event = Mapping[str, Any]
Answer = dict[str, Any]


class _Note(BaseModel):
    """What was done outside this API."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: Short
    target: Short
    why: Text


def _keys(desk: Desk, event: Event) -> Answer:
    return response(200, {"keys": operate_keys.listed(desk, query(event).get("owner_key"))})


def _create_key(desk: Desk, event: Event) -> Answer:
    return response(201, operate_keys.create(desk, read(operate_keys.NewKey, json_body(event))))


def _revoke_key(desk: Desk, event: Event, key_id: str) -> Answer:
    return response(200, operate_keys.revoke(desk, key_id, read(operate_keys.Revocation, json_body(event))))


def _owner(desk: Desk, _event: Event, owner_key: str) -> Answer:
    return response(200, {"owner_key": owner_key, "settings": dict(desk.table.owner_now(owner_key))})


def _set_owner(desk: Desk, event: Event, owner_key: str) -> Answer:
    wanted = read(operate_keys.SettingsChange, json_body(event))
    return response(200, operate_keys.set_owner(desk, owner_key, wanted))


def _switches(desk: Desk, _event: Event) -> Answer:
    return response(200, {"switches": operate_switches.listed(desk.deps)})


def _throw(desk: Desk, event: Event, name: str) -> Answer:
    switch = operate_switches.name_of(name)
    return response(200, operate_switches.put_on(desk, switch, read(operate_switches.Thrown, json_body(event))))


def _lift(desk: Desk, event: Event, name: str) -> Answer:
    switch = operate_switches.name_of(name)
    return response(200, operate_switches.take_off(desk, switch, read(Why, json_body(event)).why))


def _routes(desk: Desk, _event: Event) -> Answer:
    return response(200, {"routes": operate_routes.listed(desk.deps)})


def _route(desk: Desk, _event: Event, route_key: str) -> Answer:
    return response(200, operate_routes.shown(desk.deps, operate_routes.need_route(desk.deps, route_key)))


def _close_route(desk: Desk, event: Event, route_key: str) -> Answer:
    return response(200, operate_routes.close(desk, route_key, read(operate_routes.Closing, json_body(event))))


def _open_route(desk: Desk, event: Event, route_key: str) -> Answer:
    return response(200, operate_routes.open_(desk, route_key, read(Why, json_body(event)).why))


def _audit(desk: Desk, event: Event) -> Answer:
    month = query(event).get("month") or month_of(desk.deps.now())
    if not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", month):
        raise InvalidRequest("`month` can't be used.", field="month", rule="YYYY-MM", fix="send for example 2026-11")
    place = cursor(event, r"[0-9]{13}#[A-Za-z0-9_.-]{1,64}#[0-9]")
    return response(200, page("entries", *entries(desk, month, limit(event), place)))


def _note(desk: Desk, event: Event) -> Answer:
    wanted = read(_Note, json_body(event))
    return response(201, dict(operate.note(desk, wanted.what, wanted.target, wanted.why)))


def _usage(desk: Desk, event: Event) -> Answer:
    owner = query(event).get("owner_key")
    if owner is None:
        raise InvalidRequest("Say whose usage.", field="owner_key", rule="required", fix="send `owner_key`")
    return response(200, usage(desk.deps, owner, query(event).get("period", "")))


_KEY, _OWNER = r"/keys/(?P<key_id>[^/]{1,64})", r"/owners/(?P<owner_key>[^/#]{1,128})"
_SWITCH, _ROUTE = r"/switches/(?P<name>[^/]{1,64})", r"/routes/(?P<route_key>[^/]{1,99})"
ROUTES = rows(
    ("GET", "/keys", _keys),
    ("POST", "/keys", _create_key),
    ("POST", _KEY + "/revoke", _revoke_key),
    ("GET", _OWNER, _owner),
    ("POST", _OWNER, _set_owner),
    ("GET", "/switches", _switches),
    ("POST", _SWITCH, _throw),
    ("POST", _SWITCH + "/lift", _lift),
    ("GET", "/routes", _routes),
    ("GET", _ROUTE, _route),
    ("POST", _ROUTE + "/close", _close_route),
    ("POST", _ROUTE + "/open", _open_route),
    ("GET", "/audit", _audit),
    ("POST", "/audit", _note),
    ("GET", "/usage", _usage),
)
