"""Receivers of notifications, in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from breakwater.domain.address import Forbidden, target_of
from breakwater.domain.callbacks import Delivered, Notified, Refused


def _quiet(_name: str, _when: str) -> None:
    return None


@dataclass(frozen=True)
class Sent:
    """One message as it was handed over."""

    url: str
    secrets: tuple[str | None, ...]
    webhook_id: str
    payload: bytes
    at: int


@dataclass
class FakeNotifier:
    """`ports.Notifier` with a ledger; answers what `script` holds, else that it was delivered."""

    hook: Callable[[str, str], None] = _quiet
    script: list[Notified] = field(default_factory=list)
    always: Notified | None = None
    sent: list[Sent] = field(default_factory=list)

    def send(
        self,
        url: str,
        secrets: Sequence[str | None],
        webhook_id: str,
        payload: bytes,
        now_ms: int,
        *,
        allowed_hosts: Collection[str],
    ) -> Notified:
        self.hook("notify", "before")
        target = target_of(url, allowed_hosts)
        if isinstance(target, Forbidden):
            return Refused(target.because.value)
        if not any(secrets):
            return Refused("no_usable_secret")
        self.sent.append(Sent(url, tuple(secrets), webhook_id, payload, now_ms))
        answer = self.script.pop(0) if self.script else self.always or Delivered(200)
        self.hook("notify", "after")
        return answer
