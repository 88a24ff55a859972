"""An installation that no provider can reach polls from the start."""

from __future__ import annotations

import pytest

from breakwater import wiring
from breakwater.domain.timing import SECOND
from breakwater.usecases.routing import polling
from tests.support.catalogue import catalogue


@pytest.mark.parametrize(("receives", "first"), [("yes", 120 * SECOND), ("no", 5 * SECOND)])
def test_a_route_has_its_webhook_only_where_one_can_arrive(receives, first, monkeypatch, tmp_path):
    """Without webhooks the first poll is soon; with them it is the safety net after the grace."""
    (tmp_path / "policies.json").write_bytes(catalogue().dump())
    monkeypatch.setattr(wiring, "POLICIES", tmp_path / "policies.json")
    monkeypatch.setenv("RECEIVE_WEBHOOKS", receives)
    wiring.catalogue.cache_clear()

    loaded = wiring.catalogue()
    poll_at, _ = polling(loaded.policy("summary"), loaded.route("hook"), 0)

    assert poll_at == first
    wiring.catalogue.cache_clear()
