"""What tasks do differently from threads."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Awaitable, Callable, Generic, Mapping, Optional, TypedDict, TypeVar, Union

import httpx

T = TypeVar("T")

TokenSource = Union[str, Callable[[], str], Callable[[], Awaitable[str]]]
Work = Callable[[], Awaitable[T]]
# Method, path and body.
Send = Callable[[str, str, Optional[Mapping[str, Any]]], Awaitable[Any]]
Http = httpx.AsyncClient


class CallOptions(TypedDict, total=False):
    timeout: float
    """How long to wait for the server, in seconds."""
    retries: int
    """How often a request is repeated where that is safe."""
    idempotency_key: str
    """Names this request, so that repeating it later, even from another process, has no second effect."""
    headers: Mapping[str, str]


def check(options: Optional[CallOptions]) -> None:
    """Tasks are cancelled where they wait."""


async def pause(seconds: float, options: Optional[CallOptions]) -> None:
    await asyncio.sleep(seconds)


async def token_of(source: TokenSource) -> str:
    if isinstance(source, str):
        return source
    found = source()
    token: str = await found if inspect.isawaitable(found) else found
    return token


async def in_thread(work: Callable[[], T]) -> T:
    """Runs work that blocks, such as reading a file."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


class OneAtATime(Generic[T]):
    """Calls during a call share its result. The work continues when a caller is cancelled."""

    def __init__(self) -> None:
        self._active: Optional[asyncio.Future[T]] = None

    async def run(self, work: Work[T]) -> T:
        active = self._active
        # A task of an event loop that has ended never ends.
        if active is None or active.get_loop() is not asyncio.get_running_loop():
            active = self._active = asyncio.ensure_future(work())
            active.add_done_callback(self._forget)
        return await asyncio.shield(active)

    def _forget(self, ended: asyncio.Future[T]) -> None:
        if self._active is ended:
            self._active = None
        # Otherwise, Python warns of an exception that nobody awaited when all callers were cancelled.
        if not ended.cancelled():
            ended.exception()
