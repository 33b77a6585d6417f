"""Why a call failed."""

from __future__ import annotations

import email.utils
import json
import time
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional

if TYPE_CHECKING:
    from .types import ErrorErrorFields


class QuarryError(Exception):
    """A call that failed.

    An error of the API has its `status`, `code`, `fields` and `details`. An error of the client has no status, and the
    code `unreachable` (no response), `timed_out`, `signed_out` (the session cannot be renewed), `cancelled` or
    `bad_response`.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: Optional[int] = None,
        fields: Optional[List[ErrorErrorFields]] = None,
        details: Optional[Dict[str, Any]] = None,
        request_id: Optional[str] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        """A stable code: those of the API are in docs/errors.md."""
        self.status = status
        self.fields = fields or []
        """The invalid members of the request."""
        self.details = details or {}
        self.request_id = request_id
        """Names the request in the log of the server."""
        self.retry_after = retry_after
        """How long the server asks to wait, in seconds."""

    def __str__(self) -> str:
        code = self.code if self.status is None else f"{self.status} {self.code}"
        return f"{self.message.rstrip('.')} ({code})."

    def __reduce__(self) -> Any:
        # Exceptions are copied between processes by their arguments, of which this one has more than its message.
        return (_restore, (self.__dict__,))


def _restore(members: Dict[str, Any]) -> QuarryError:
    error = QuarryError(members["code"], members["message"])
    error.__dict__.update(members)
    return error


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> QuarryError:
    """Reads the error of a response, whatever a proxy made of it."""
    request_id = headers.get("x-request-id")
    retry_after = _retry_after(headers.get("retry-after"))
    try:
        error = json.loads(body)["error"]
        return QuarryError(
            error["code"],
            error["message"],
            status=status,
            fields=error.get("fields"),
            details=error.get("details"),
            request_id=request_id,
            retry_after=retry_after,
        )
    except (ValueError, KeyError, TypeError):
        # Not from the API: a proxy in between, or the wrong address.
        message = f"The response has status {status} and is not one of Quarry."
        return QuarryError("bad_response", message, status=status, request_id=request_id, retry_after=retry_after)


def _retry_after(value: Optional[str]) -> Optional[float]:
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
