"""What does the middle need from the outside? One protocol per need; the edges implement them.

Every method that talks to a service raises a subclass of `errors.Unavailable` when the service does not answer.
"""

from __future__ import annotations

from typing import Protocol

from breakwater.domain.results import Call, Found, Outcome
from breakwater.domain.signals import Signal


class Provider(Protocol):
    """One provider behind one route. Provider errors never leave as exceptions: they come back as `Refused`."""

    def submit(self, call: Call) -> Outcome:
        """Send one attempt, exactly one HTTP request, and say how it ended.

        `Accepted` only where `call.background` was asked for and the provider took it.
        """
        ...

    def fetch(self, provider_job_id: str) -> Found:
        """Read a provider job. A job the provider doesn't know is `Refused` with class `not_found`."""
        ...

    def cancel(self, provider_job_id: str) -> Signal | None:
        """Ask the provider to stop. None: it is stopped or already over; a signal: it could not be told."""
        ...
