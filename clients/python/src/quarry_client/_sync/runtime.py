"""What threads do differently from tasks."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any, Callable, Generic, Mapping, Optional, TypedDict, TypeVar, Union

import httpx

from ..errors import QuarryError

T = TypeVar("T")

TokenSource = Union[str, Callable[[], str]]
Work = Callable[[], T]
# Method, path and body.
Send = Callable[[str, str, Optional[Mapping[str, Any]]], Any]
Http = httpx.Client


class CallOptions(TypedDict, total=False):
    timeout: float
    """How long to wait for the server, in seconds."""
    retries: int
    """How often a request is repeated where that is safe."""
    idempotency_key: str
    """Names this request, so that repeating it later, even from another process, has no second effect."""
    headers: Mapping[str, str]
    cancel: threading.Event
    """Ends the call when another thread sets it: before each request, in each pause, and at each event of a stream."""


def check(options: Optional[CallOptions]) -> None:
    """Raises if the call has been cancelled."""
    if options is not None and "cancel" in options and options["cancel"].is_set():
        raise QuarryError("cancelled", "The call was cancelled.")


def pause(seconds: float, options: Optional[CallOptions]) -> None:
    if options is not None and "cancel" in options:
        options["cancel"].wait(seconds)
        check(options)
    else:
        time.sleep(seconds)


def token_of(source: TokenSource) -> str:
    return source if isinstance(source, str) else source()


def in_thread(work: Callable[[], T]) -> T:
    """Runs work that blocks, such as reading a file."""
    return work()


class OneAtATime(Generic[T]):
    """Calls during a call share its result."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: Optional[Future[T]] = None

    def run(self, work: Work[T]) -> T:
        with self._lock:
            active = self._active
            own: Optional[Future[T]] = None
            if active is None:
                own = self._active = Future()
        if active is not None:
            return active.result()
        assert own is not None
        try:
            result = work()
        except BaseException as error:
            self._end()
            own.set_exception(error)
            raise
        self._end()
        own.set_result(result)
        return result

    def _end(self) -> None:
        with self._lock:
            self._active = None
