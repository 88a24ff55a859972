"""Does the deployed API let in whom it should, and nobody else?"""

from __future__ import annotations

import httpx
import pytest


@pytest.mark.parametrize(
    ("method", "path", "key", "status"),
    [
        ("POST", "/v1/jobs", None, 401),
        ("GET", "/v1/jobs", "Bearer bw_of_nobody", 403),
        ("GET", "/v1/ops/jobs", None, 401),
        ("DELETE", "/v1/jobs/job_x", "Bearer bw_of_nobody", 404),
        ("GET", "/", None, 404),
    ],
)
def test_the_gateway_refuses_on_its_own(deployed_stack, method, path, key, status):
    """Without a key, with a wrong one, or on a path that nobody serves, no function of ours is asked."""
    headers = {"Authorization": key} if key else {}

    answer = httpx.request(method, f"{deployed_stack.api_url}{path}", headers=headers, timeout=30)

    assert answer.status_code == status
    assert "message" in answer.json()


def test_a_key_of_the_seed_may_list_jobs(deployed_stack):
    """The key is in the control table, where the authorizer finds it."""
    headers = {"Authorization": f"Bearer {deployed_stack.remembered()['api_key']}"}

    answer = httpx.get(f"{deployed_stack.api_url}/v1/jobs", headers=headers, timeout=30)

    assert answer.status_code == 200
