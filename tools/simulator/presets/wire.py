"""What can go wrong between the caller and any provider?"""

from __future__ import annotations

from .rows import Template


def _page(status: int, title: str) -> Template:
    body = (
        f"<!DOCTYPE html>\n<html><head><title>{title}</title></head>"
        f"<body><h1>Error {status}</h1><p>{title}</p><hr>cloudflare</body></html>\n"
    )
    headers = {"content-type": "text/html; charset=UTF-8", "server": "cloudflare"}
    return {"status": status, "headers": headers, "body": body}


ROWS: dict[str, Template] = {
    "html_200": _page(200, "Just a moment..."),
    "html_502": _page(502, "502: Bad gateway"),
    "html_520": _page(520, "520: Web server is returning an unknown error"),
    "html_522": _page(522, "522: Connection timed out"),
    "html_524": _page(524, "524: A timeout occurred"),
    "empty_body": {"kind": "empty_body"},
    "truncated_json": {"kind": "truncated_json"},
    "hang": {"kind": "hang"},
    "hang_accepted": {"kind": "hang", "processed": True},
    "slow": {"kind": "slow", "ms": 1500},
    "cut": {"kind": "cut_before"},
    "cut_accepted": {"kind": "cut_after"},
    "cut_body": {"kind": "cut_body"},
    "stream_cut": {"kind": "stream_cut"},
    "stream_stall": {"kind": "stream_stall"},
    "stream_error": {"kind": "stream_error"},
    "stream_error_first": {"kind": "stream_error", "after_events": 0},
    "stream_end": {"kind": "stream_end"},
    "stream_done": {"kind": "stream_done"},
    "background_queued": {"kind": "background", "outcome": "queued"},
    "background_in_progress": {"kind": "background", "outcome": "in_progress"},
    "background_failed": {
        "kind": "background",
        "outcome": "failed",
        "error": {"code": "server_error", "message": "The model broke (simulated)."},
    },
    "background_rate_limited": {
        "kind": "background",
        "outcome": "failed",
        "error": {"code": "rate_limit_exceeded", "message": "Rate limited while running."},
    },
    "background_failed_silently": {"kind": "background", "outcome": "failed"},
    "background_incomplete": {"kind": "background", "outcome": "incomplete"},
    "background_filtered": {
        "kind": "background",
        "outcome": "incomplete",
        "reason": "content_filter",
    },
    "background_cancelled": {"kind": "background", "outcome": "cancelled"},
}
