"""What both halves decide alike: requests, and which of them are repeated."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, TypeVar, Union
from urllib.parse import quote

from .errors import QuarryError

T = TypeVar("T")


class Omit:
    """The type of `OMIT`."""

    def __repr__(self) -> str:
        return "OMIT"


OMIT = Omit()
"""Leaves a member out of a request. None is sent as null, which often means to remove a value."""

Maybe = Union[T, Omit]

TIMEOUT_SECONDS = 60.0
RETRIES = 2
# A longer wait than this is the caller's decision.
WAIT_SECONDS_MAX = 30.0
# Statuses of requests that the server has not processed.
REFUSED = (429, 503)
# Statuses of requests that may have been processed.
UNCLEAR = (408, 500, 502, 504)


@dataclass
class Request:
    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    # Sent as JSON.
    body: Optional[Mapping[str, Any]] = None
    # Sent as they are, with the content type in `headers`.
    content: Optional[bytes] = None
    # Whether the operation takes `Idempotency-Key`.
    keyed: bool = False
    # Whether the response is read as it arrives, instead of whole.
    streamed: bool = False


def given(**members: Any) -> Dict[str, Any]:
    """The members that a caller has given."""
    return {name: value for name, value in members.items() if value is not OMIT}


def path(template: str, *values: Union[str, List[str]]) -> str:
    """A path with its parameters encoded. The parts of a list stay separate segments."""
    return template.format(*("/".join(map(_segment, each if isinstance(each, list) else [each])) for each in values))


def _segment(value: str) -> str:
    # Programs resolve dots in paths, even encoded ones, so the request would go elsewhere.
    if value in ("", ".", ".."):
        raise ValueError(f'"{value}" cannot be part of a path.')
    return quote(value, safe="")


def query_text(query: Mapping[str, Any]) -> str:
    pairs = [f"{name}={quote(_text(value), safe='')}" for name, value in query.items() if value is not None]
    return f"?{'&'.join(pairs)}" if pairs else ""


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_repeatable(request: Request, key: Optional[str]) -> bool:
    """Whether a second attempt has no second effect, even if the first one took effect."""
    if key is not None:
        return True
    # A conditional write that took effect refuses its own repeat.
    if any(name.lower().startswith("if-") for name in request.headers):
        return request.method == "GET"
    return request.method in ("GET", "PUT", "DELETE")


def seconds_until_repeat(error: QuarryError, attempt: int, repeatable: bool) -> Optional[float]:
    """How long to wait before the next attempt; None if there should be none."""
    refused = error.status in REFUSED or error.code == "request_in_progress"
    if not refused and not (repeatable and _is_unclear(error)):
        return None
    pause = random.random() * 0.25 * 2**attempt if error.retry_after is None else error.retry_after
    return pause if pause <= WAIT_SECONDS_MAX else None


def _is_unclear(error: QuarryError) -> bool:
    return error.code in ("unreachable", "timed_out") if error.status is None else error.status in UNCLEAR


def next_page(page: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """What the query of the next page has in addition; None after the last one."""
    if page.get("has_next"):
        return {"page": page.get("page", 1) + 1}
    if page.get("after_cursor"):
        return {"after_cursor": page["after_cursor"]}
    return {"cursor": page["next_cursor"]} if page.get("next_cursor") else None
