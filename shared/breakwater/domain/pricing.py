"""What does a call cost, in whole micro-dollars?

Prices are micro-dollars per million tokens (which is dollars times a million, per million tokens) and per image. A
price nobody has looked up is None, and a cost that would need it is None: an unknown cost is not a free one. Money is
rounded up once, over the whole call, so that many small calls never add up to nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from breakwater.domain.results import Usage

_MILLION = 1_000_000
_BYTES_PER_TOKEN = 4
_TOKENS_PER_IMAGE = 1_000  # of an image in the input: a middle size of the providers' own tables
_CONTENT_KEYS = ("messages", "instructions", "prompt", "json_schema", "tools")
_IMAGE_TYPES = ("image", "image_url", "input_image")


class Prices(Protocol):
    """What a price table must know; None where nobody has looked."""

    @property
    def input(self) -> int | None: ...

    @property
    def cached_input(self) -> int | None: ...

    @property
    def output(self) -> int | None: ...

    @property
    def image(self) -> int | None: ...


def cost_micros(usage: Usage, prices: Prices) -> int | None:
    """The cost of a call, rounded up; None where a price it needs is unknown.

    Reasoning tokens are part of the output, cached tokens part of the input; without a price of their own they cost
    what input costs. Images that have a price are paid by the piece instead of by output tokens.
    """
    cached = min(usage.cached_tokens, usage.input_tokens)
    by_piece = usage.images > 0 and prices.image is not None
    parts = (
        (usage.input_tokens - cached, prices.input),
        (cached, prices.input if prices.cached_input is None else prices.cached_input),
        (0 if by_piece else usage.output_tokens, prices.output),
        (usage.images * _MILLION if by_piece or not usage.output_tokens else 0, prices.image),
    )
    if any(amount and price is None for amount, price in parts):
        return None
    return -(-sum(amount * (price or 0) for amount, price in parts) // _MILLION)


def estimate(payload: Mapping[str, Any], prices: Prices, max_output_tokens: int) -> int | None:
    """What a call may cost at most, before it is made: its input as estimated, and all the output it may produce."""
    images = _images(payload)
    usage = Usage(
        input_tokens=estimate_tokens(payload),
        output_tokens=0 if images else max(max_output_tokens, 0),
        images=images,
    )
    return cost_micros(usage, prices)


def estimate_tokens(payload: Mapping[str, Any]) -> int:
    """The input of a payload in tokens: a quarter of its characters, and a flat number per image.

    Counted in UTF-8 bytes, which is the same for English text and errs less for scripts whose characters are tokens
    of their own. Good to about 20 %, which is enough to reserve a rate and to refuse what a budget can't bear.
    """
    leaves = [leaf for key in _CONTENT_KEYS if payload.get(key) for leaf in _leaves(payload[key])]
    size = sum(len(leaf.encode("utf-8", "surrogatepass")) for leaf in leaves if leaf is not None)
    return -(-size // _BYTES_PER_TOKEN) + leaves.count(None) * _TOKENS_PER_IMAGE


def _images(payload: Mapping[str, Any]) -> int:
    """How many images are asked for: only media calls carry a `prompt`."""
    count = payload.get("n", 1)
    return (count if isinstance(count, int) and count > 0 else 1) if "prompt" in payload else 0


def _leaves(value: Any) -> Iterator[str | None]:
    """Each text in a JSON value, and None for each image, whose own data is no text."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            if item.get("type") in _IMAGE_TYPES:
                yield None
            else:
                waiting.extend((*item.keys(), *item.values()))
        elif isinstance(item, list):
            waiting.extend(item)
        else:
            yield item if isinstance(item, str) else json.dumps(item)
