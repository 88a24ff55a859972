"""Who may call? Keys are made, shown once, listed and revoked here; only their hashes are kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from breakwater.domain.errors import NotFound, TooLate
from breakwater.domain.owner_settings import OwnerKey, checked
from breakwater.domain.records import ApiKey
from breakwater.domain.replay import Short, Text
from breakwater.usecases.audit import Action, Desk, audited

Scope = Literal["submit", "read", "operate"]


class NewKey(BaseModel):
    """What a key is made for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    owner_key: OwnerKey
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    expires_at: Annotated[int, Field(ge=0)] | None = None
    why: Text


class Revocation(BaseModel):
    """Whose key it is, and why it goes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    owner_key: Short
    why: Text


class SettingsChange(BaseModel):
    """All settings of an owner, in the place of those before; `owner_settings.py` says what may stand there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: dict[str, Any]
    why: Text


def create(desk: Desk, wanted: NewKey) -> dict[str, Any]:
    """A new key with its secret, which is told here and never again."""
    secret = f"bw_{secrets.token_urlsafe(32)}"
    key_hash = hashlib.sha256(secret.encode()).hexdigest()
    key = ApiKey(
        key_hash=key_hash,
        key_id=f"key_{key_hash[:12]}",
        owner_key=wanted.owner_key,
        scopes=frozenset(wanted.scopes),
        created_at=desk.deps.now(),
        expires_at=wanted.expires_at,
    )

    def work() -> tuple[dict[str, Any], Mapping[str, Any]]:
        desk.table.put_api_key(key)
        return {**shown(key), "api_key": secret}, shown(key)

    action = Action(what="create_key", target=f"key:{key.owner_key}/{key.key_id}", why=wanted.why)
    return audited(desk, action, work)


def listed(desk: Desk, owner_key: str | None) -> list[dict[str, Any]]:
    """Keys of one owner or of all, without anything that could be used."""
    return [shown(one) for one in desk.table.api_keys(owner_key)]


def revoke(desk: Desk, key_id: str, wanted: Revocation) -> dict[str, Any]:
    """A revoked key; it may still work for the 60 s that the gateway caches."""
    key = next((one for one in desk.table.api_keys(wanted.owner_key) if one.key_id == key_id), None)
    if key is None:
        raise NotFound("There is no key of this id.", field="key_id", rule="exists", fix="list the owner's keys")
    now = desk.deps.now()

    def work() -> tuple[dict[str, Any], Mapping[str, Any]]:
        if not desk.table.revoke_api_key(key, now):
            raise TooLate("The key was revoked before.", field="key_id", rule="usable", fix="nothing was changed")
        gone = shown(replace(key, revoked_at=now))
        return gone, gone

    action = Action(what="revoke_key", target=f"key:{key.owner_key}/{key.key_id}", why=wanted.why, before=shown(key))
    return audited(desk, action, work)


def shown(key: ApiKey) -> dict[str, Any]:
    """A key as people see it."""
    found = {
        "key_id": key.key_id,
        "owner_key": key.owner_key,
        "scopes": sorted(key.scopes),
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
        "expires_at": key.expires_at,
    }
    return {name: value for name, value in found.items() if value is not None}


def set_owner(desk: Desk, owner_key: str, wanted: SettingsChange) -> dict[str, Any]:
    """Replace an owner's settings; raises `InvalidRequest` for what is none, `TooLate` for a change meanwhile."""
    settings = checked(owner_key, wanted.settings)
    before = desk.table.owner_now(owner_key)

    def work() -> tuple[dict[str, Any], Mapping[str, Any]]:
        if not desk.table.put_owner(owner_key, before, settings):
            raise TooLate("Somebody else changed it.", field="owner_key", rule="as_read", fix="read it and try again")
        return {"owner_key": owner_key, "settings": settings}, settings

    action = Action(what="set_owner", target=f"owner:{owner_key}", why=wanted.why, before=before)
    return audited(desk, action, work)
