"""Waiting for the end of what a request started."""

from __future__ import annotations

import time
from typing import Callable, Optional, TypeVar

from .. import types
from .._shared import path
from ..errors import QuarryError
from .connection import AsyncConnection, AsyncEventStream
from .runtime import CallOptions, Work, pause

T = TypeVar("T")


async def poll(
    look: Work[T],
    has_ended: Callable[[T], bool],
    seconds: Optional[float],
    options: Optional[CallOptions],
) -> T:
    """Looks with growing pauses, from 0.1 to 5 seconds, until the state has ended, or for at most `seconds`."""
    until = None if seconds is None else time.monotonic() + seconds
    wait = 0.1
    while True:
        state = await look()
        left = wait if until is None else until - time.monotonic()
        if has_ended(state) or left <= 0:
            return state
        await pause(min(wait, left), options)
        wait = min(wait * 1.5, 5.0)


async def end_of(
    connection: AsyncConnection,
    place: str,
    state: T,
    has_ended: Callable[[T], bool],
    options: Optional[CallOptions],
    seconds: Optional[float],
) -> T:
    """Waits by the stream of `place`, or by looking for at most `seconds`.

    It looks as well where there is no stream: a run that an event or a schedule started has none (404), and an app has
    only so many at a time (429).
    """
    if has_ended(state):
        return state
    if seconds is None:
        stream: AsyncEventStream[T] = AsyncEventStream(connection, f"{place}/stream", None, options)
        try:
            async with stream:
                async for event in stream:
                    if has_ended(event.data):
                        break
        except QuarryError as error:
            if error.status not in (404, 429):
                raise

    async def look() -> T:
        found: T = await connection.call("GET", place, options=options)
        return found

    return await poll(look, has_ended, seconds, options)


def is_run_over(run: types.AutomationRun) -> bool:
    return run["status"] in ("completed", "failed", "cancelled")


async def run_end(
    connection: AsyncConnection,
    run: types.AutomationRun,
    options: Optional[CallOptions],
    seconds: Optional[float] = None,
) -> types.AutomationRun:
    place = path("/api/v1/automation_runs/{}", run["id"])
    return await end_of(connection, place, run, is_run_over, options, seconds)


def is_extraction_over(extraction: types.Extraction) -> bool:
    return extraction["state"] != "running"


async def extraction_end(
    connection: AsyncConnection,
    extraction: types.Extraction,
    options: Optional[CallOptions],
    seconds: Optional[float] = None,
) -> types.Extraction:
    place = path("/api/v1/extractions/{}", extraction["id"])
    return await end_of(connection, place, extraction, is_extraction_over, options, seconds)


def is_ingestion_over(ingestion: types.KnowledgeIngestion) -> bool:
    return ingestion["status"] in ("succeeded", "failed")


async def ingestion_end(
    connection: AsyncConnection,
    ingestion: types.KnowledgeIngestion,
    options: Optional[CallOptions],
    seconds: Optional[float] = None,
) -> types.KnowledgeIngestion:
    place = path("/api/v1/knowledge_ingestions/{}", ingestion["id"])
    return await end_of(connection, place, ingestion, is_ingestion_over, options, seconds)
