"""What may a file of webhook endpoints say? Checked when it is compiled; `endpoints.py` reads what passed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, StrictBool, ValidationInfo, field_validator, model_validator

from breakwater.domain.endpoints import Endpoint, Outcome, ResultPaths, endpoints_of, listed
from breakwater.domain.entries import Entry, EntryName, Strict, load_entries
from breakwater.domain.signature import TOLERANCE_S

Path = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")]
Paths = Annotated[tuple[Path, ...], BeforeValidator(listed)]
Header = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")]
Pattern = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:/*-]+$")]
Mime = Annotated[str, Field(pattern=r"^[a-z]+/[A-Za-z0-9.+-]+$")]
_READ = ResultPaths()


class Headers(Strict):
    """What the sender calls its headers; case does not matter."""

    id: Header = "webhook-id"
    timestamp: Header = "webhook-timestamp"
    signature: Header = "webhook-signature"


class ResultEntry(Strict):
    """Where the outcome stands in a body that carries it; a path that is not given reads nothing."""

    text: Paths = ()
    media: Paths = ()
    media_url: Paths = _READ.media_url
    media_b64: Paths = _READ.media_b64
    media_mime: Paths = _READ.media_mime
    mime: Mime = _READ.mime
    finish_reason: Paths = ()
    model: Paths = ()
    input_tokens: Paths = ()
    cached_tokens: Paths = ()
    output_tokens: Paths = ()
    reasoning_tokens: Paths = ()
    images: Paths = ()
    cost: Paths = ()
    error_type: Paths = ()
    error_code: Paths = ()
    error_message: Paths = ()
    error_status: Paths = ()

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not (self.text or self.media):
            raise ValueError("reads neither text nor media; add the path of what the job makes")
        return self


class EndpointEntry(Entry):
    """One sender as its file describes it."""

    provider: Annotated[str, Field(min_length=1)]
    secret: EntryName
    headers: Headers = Headers()
    tolerance_s: Annotated[int, Field(strict=True, ge=1, le=3_600)] = TOLERANCE_S
    event_type: Annotated[Paths, Field(min_length=1)]
    state: Paths = ()
    provider_job_id: Paths = ()
    job_id: Paths = ()
    execution_id: Paths = ()
    outcomes: Annotated[dict[Pattern, Outcome], Field(min_length=1)]
    fetch: StrictBool = True
    result: Annotated[ResultEntry | None, Field(validate_default=True)] = None
    description: str = ""

    @field_validator("result")
    @classmethod
    def _where_it_is_read(cls, result: ResultEntry | None, info: ValidationInfo) -> ResultEntry | None:
        fetch = info.data.get("fetch", True)
        if fetch and result is not None:
            raise ValueError("is read only with fetch: false; set that, or remove result")
        if not fetch and result is None:
            raise ValueError("is missing: fetch: false needs the paths of what the job makes; add result, or fetch")
        return result

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.fetch and not self.provider_job_id:
            raise ValueError("fetch: true needs provider_job_id, the path of what to ask for")
        if not self.fetch and not self.provider_job_id and not (self.job_id and self.execution_id):
            raise ValueError(
                "fetch: false needs a way to the job: add job_id and execution_id where the sender returns our "
                "metadata, else provider_job_id"
            )
        return self


def load_endpoints(raw: Mapping[str, Any] | list[Any]) -> dict[str, Endpoint]:
    """The endpoints by name, from `{"endpoints": [...]}`; raises `InvalidPolicy` with the path of what is wrong."""
    return endpoints_of([one.model_dump(mode="json") for one in load_entries(EndpointEntry, raw, "endpoints").values()])
