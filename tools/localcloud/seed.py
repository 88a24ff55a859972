"""What does a fresh stack need before it can work? One API key, provider keys, and the webhook secret.

Each goes where production keeps it: the control table and Secrets Manager. With `OPENAI_API_KEY` in the environment,
OpenAI's routes are real; every other provider is the simulator.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from breakwater import policy_yaml
from breakwater.domain.records import ApiKey
from breakwater.store.control import ControlTable
from breakwater.store.operator import OperatorTable
from tools.simulator.client import SimulatorClient

if TYPE_CHECKING:
    from tools.localcloud.cloud import LocalCloud

OWNER = "demo"
SCOPES = frozenset({"submit", "read", "operate"})
SIMULATED_KEY = "sk-simulated"


def provider_base_urls(simulator: str, environ: Mapping[str, str] = os.environ) -> str:
    """The stack parameter that points providers at the simulator, except one whose real key is there."""
    urls = {
        "openai": f"{simulator}/openai/v1",
        "anthropic": f"{simulator}/anthropic",
        "gemini": f"{simulator}/gemini",
        "gateway": f"{simulator}/gateway/v1",
        "flatkey": f"{simulator}/flatkey/v1",
    }
    if environ.get("OPENAI_API_KEY"):
        del urls["openai"]
    return json.dumps(urls)


def stand_up(cloud: LocalCloud) -> None:
    """A stack that can work, whose every provider is the simulator: for experiments and tests."""
    cloud.start(simulator=True)
    cloud.deploy(ProviderBaseUrls=provider_base_urls(cloud.simulator.url, {}))
    seed(cloud)


def seed(cloud: LocalCloud) -> dict[str, str]:
    """Put the API key and the secrets in place; a second time, what was made stays. Returns what to tell people."""
    known = cloud.remembered()
    api_key = known.get("api_key") or f"bw_{secrets.token_urlsafe(24)}"
    webhook_secret = known.get("webhook_secret") or f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}"
    put_api_key(cloud, api_key)
    outputs, store = cloud.outputs(), cloud.client("secretsmanager")
    values: dict[str, object] = {
        "ProviderKeysSecretArn": provider_keys(cloud),
        "WebhookSecretsSecretArn": {"openai": [webhook_secret]},
        "NotifySecretsSecretArn": {"default": [webhook_secret]},
    }
    for output, value in values.items():
        store.put_secret_value(SecretId=outputs[output], SecretString=json.dumps(value))
    with SimulatorClient(cloud.simulator.url) as simulator:
        simulator.webhooks(f"{cloud.api_url}/v1/webhooks/openai", [webhook_secret])
    cloud.remember(api_key=api_key, webhook_secret=webhook_secret)
    return cloud.remembered()


def put_api_key(cloud: LocalCloud, api_key: str, *, owner: str = OWNER, scopes: frozenset[str] = SCOPES) -> None:
    """Store a key's record; one that stands already is left alone."""
    client = cloud.client("dynamodb")
    control = ControlTable(client, cloud.outputs()["ControlTableName"], time.monotonic_ns)
    key_hash = hashlib.sha256(api_key.encode()).hexdigest()
    if control.api_key(key_hash) is None:
        record = ApiKey(
            key_hash=key_hash,
            key_id=f"key_{key_hash[:12]}",
            owner_key=owner,
            scopes=scopes,
            created_at=time.time_ns() // 1_000_000,
        )
        OperatorTable(client, cloud.outputs()["ControlTableName"]).put_api_key(record)


def provider_keys(cloud: LocalCloud, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """A key for every credential that a route names."""
    routes = policy_yaml.load(cloud.root / "shared" / "policies").routes.values()
    real = environ.get("OPENAI_API_KEY")
    return {one.credential: real if real and one.provider == "openai" else SIMULATED_KEY for one in routes}
