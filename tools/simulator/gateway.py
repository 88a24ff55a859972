"""What does an OpenAI-compatible gateway add to chat completions?

OpenRouter's fields: who served it, what it cost, why the upstream stopped.
"""

from __future__ import annotations

from .answers import Answer
from .shapes import Json

_INPUT_USD = 0.000_001
_OUTPUT_USD = 0.000_004


class GatewayFlavour:
    """A gateway that names its upstream and tells the price."""

    id_prefix = "gen-"
    usage_always = True

    def __init__(self, provider: str) -> None:
        """Say who the upstream is."""
        self._provider = provider

    def head(self) -> Json:
        """Name the upstream."""
        return {"provider": self._provider, "system_fingerprint": None}

    def usage(self, answer: Answer) -> Json:
        """Tell the price in dollars."""
        given, written = answer.usage.input * _INPUT_USD, answer.usage.output * _OUTPUT_USD
        details = {
            "upstream_inference_prompt_cost": round(given, 9),
            "upstream_inference_completions_cost": round(written, 9),
        }
        return {"cost": round(given + written, 9), "is_byok": False, "cost_details": details}

    def choice(self, finish: str | None) -> Json:
        """Pass on the upstream's own reason."""
        return {"logprobs": None, "native_finish_reason": finish}

    def opening(self) -> tuple[bytes, ...]:
        """Say that it is alive, in a comment."""
        return (b": OPENROUTER PROCESSING\n\n",)
