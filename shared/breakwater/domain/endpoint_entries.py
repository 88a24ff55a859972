"""What may a file of webhook endpoints say? Checked when it is compiled; `endpoints.py` reads what passed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from breakwater.domain.endpoints import Endpoint, Outcome, endpoints_of, listed
from breakwater.domain.entries import Entry, EntryName, Strict, load_entries
from breakwater.domain.signature import TOLERANCE_S

Path = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")]
Paths = Annotated[tuple[Path, ...], BeforeValidator(listed)]
Header = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")]
Pattern = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:/*-]+$")]


class Headers(Strict):
    """What the sender calls its headers; case does not matter."""

    id: Header = "webhook-id"
    timestamp: Header = "webhook-timestamp"
    signature: Header = "webhook-signature"


class EndpointEntry(Entry):
    """One sender as its file describes it."""

    provider: Annotated[str, Field(min_length=1)]
    secret: EntryName
    headers: Headers = Headers()
    tolerance_s: Annotated[int, Field(strict=True, ge=1, le=3_600)] = TOLERANCE_S
    event_type: Annotated[Paths, Field(min_length=1)]
    provider_job_id: Paths = ()
    job_id: Paths = ()
    execution_id: Paths = ()
    outcomes: Annotated[dict[Pattern, Outcome], Field(min_length=1)]
    fetch: StrictBool = True
    description: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.fetch and not self.provider_job_id:
            raise ValueError("fetch: true needs provider_job_id, the path of what to ask for")
        return self


def load_endpoints(raw: Mapping[str, Any] | list[Any]) -> dict[str, Endpoint]:
    """The endpoints by name, from `{"endpoints": [...]}`; raises `InvalidPolicy` with the path of what is wrong."""
    return endpoints_of([one.model_dump(mode="json") for one in load_entries(EndpointEntry, raw, "endpoints").values()])
