"""How does a test script the simulator and read it back?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from .ledger import Entry
from .shapes import Json

T = TypeVar("T")
_EVERY_SECONDS = 0.01


class SimulatorClient:
    """The control API in Python; every method raises `SimulatorError` if it is refused."""

    def __init__(self, base_url: str, timeout: float = 10.0) -> None:
        """Talk to the simulator at this address."""
        self.base_url = base_url
        self._http = httpx.Client(base_url=f"{base_url}/_sim", timeout=timeout, trust_env=False)

    def health(self) -> Json:
        """Tell that it runs: status, pid, calls."""
        found: Json = self._call("GET", "/health")
        return found

    def fault(self, preset: str | None = None, **fields: Any) -> str:
        """Queue a fault, by preset or by the fields of `faults.Fault`; return its id."""
        script = {**({"preset": preset} if preset else {}), **fields}
        return str(self._call("POST", "/faults", script)[0]["id"])

    def faults(self) -> list[Json]:
        """List the queue, spent faults too."""
        found: list[Json] = self._call("GET", "/faults")
        return found

    def clear_faults(self, fault_id: str | None = None) -> None:
        """Take out one fault, or all."""
        self._call("DELETE", "/faults", query={"id": fault_id} if fault_id else {})

    def webhooks(self, url: str | None, secrets: Sequence[str] = (), **fields: Any) -> None:
        """Set where webhooks go; the fields are those of `WebhookSettings`."""
        self._call("POST", "/webhooks", {"url": url, "secrets": list(secrets), **fields})

    def send_webhook(self, event_type: str, response_id: str, webhook_id: str | None = None) -> Json:
        """Send one event by hand, true or not."""
        wanted = {"type": event_type, "response_id": response_id, "webhook_id": webhook_id}
        found: Json = self._call("POST", "/webhooks/send", wanted)
        return found

    def deliveries(self, response_id: str | None = None) -> list[Json]:
        """List what was sent and how each attempt was answered."""
        query = {"response_id": response_id} if response_id else {}
        found: list[Json] = self._call("GET", "/webhooks/deliveries", query=query)
        return found

    def ledger(self, **filters: str | int | bool) -> list[Entry]:
        """List calls that match; `metadata_KEY=...` filters on a metadata value."""
        return [Entry(**each) for each in self._call("GET", "/ledger", query=_query(filters))]

    def summary(self, group: str | None = None, **filters: str | int | bool) -> Json:
        """Count calls and charges, also by the value of a metadata key or `header:NAME`."""
        query = {**_query(filters), **({"group": group} if group else {})}
        found: Json = self._call("GET", "/ledger/summary", query=query)
        return found

    def responses(self) -> list[Json]:
        """List all responses, briefly."""
        found: list[Json] = self._call("GET", "/responses")
        return found

    def response(self, response_id: str) -> Json:
        """Show one response, its object and its deliveries."""
        found: Json = self._call("GET", f"/responses/{response_id}")
        return found

    def end_response(self, response_id: str, outcome: str = "completed") -> Json:
        """Bring a running response to its end now."""
        found: Json = self._call("POST", f"/responses/{response_id}/end", {"outcome": outcome})
        return found

    def concurrency(self) -> Json:
        """Show the gauges: current, max, max_at_ms and samples by name."""
        found: Json = self._call("GET", "/concurrency")
        return found

    def presets(self) -> Json:
        """Show every preset."""
        found: Json = self._call("GET", "/presets")
        return found

    def reset(self, *parts: str) -> None:
        """Forget these parts, or everything."""
        self._call("POST", "/reset", {"parts": list(parts)} if parts else {})

    def wait_for(self, predicate: Callable[[], T | None], timeout: float = 5.0) -> T:
        """Ask again until the answer is true, and return it; TimeoutError if it never is."""
        until = time.monotonic() + timeout
        while True:
            found = predicate()
            if found:
                return found
            if time.monotonic() > until:
                message = f"not true within {timeout} s"
                raise TimeoutError(message)
            time.sleep(_EVERY_SECONDS)

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """Use it in a with statement."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it at the end."""
        self.close()

    def _call(self, method: str, path: str, body: Json | None = None, query: dict[str, str] | None = None) -> Any:
        response = self._http.request(method, path, json=body, params=query)
        if response.is_error:
            raise SimulatorError(response.status_code, response.text)
        return response.json()


class SimulatorError(Exception):
    """The control API refused a request; the script has a mistake."""


def _query(filters: dict[str, str | int | bool]) -> dict[str, str]:
    query = {}
    for name, value in filters.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        query[name.replace("metadata_", "metadata.", 1)] = text
    return query
