# Written by scripts/python-client.ts. Do not edit: npm run clients
"""Waiting for the end of what a request started."""

from __future__ import annotations

import time
from typing import Callable, Optional, TypeVar

from .. import types
from .._shared import path
from ..errors import QuarryError
from .connection import Connection, EventStream
from .runtime import CallOptions, Work, pause

T = TypeVar("T")


def poll(
    look: Work[T],
    has_ended: Callable[[T], bool],
    seconds: Optional[float],
    options: Optional[CallOptions],
) -> T:
    """Looks with growing pauses, from 0.1 to 5 seconds, until the state has ended, or for at most `seconds`."""
    until = None if seconds is None else time.monotonic() + seconds
    wait = 0.1
    while True:
        state = look()
        left = wait if until is None else until - time.monotonic()
        if has_ended(state) or left <= 0:
            return state
        pause(min(wait, left), options)
        wait = min(wait * 1.5, 5.0)


def is_run_over(run: types.AutomationRun) -> bool:
    return run["status"] in ("completed", "failed", "cancelled")


def run_end(
    connection: Connection,
    run: types.AutomationRun,
    options: Optional[CallOptions],
    seconds: Optional[float] = None,
) -> types.AutomationRun:
    if is_run_over(run):
        return run
    place = path("/api/v1/automation_runs/{}", run["id"])
    if seconds is None:
        stream: EventStream[types.AutomationRun] = EventStream(connection, f"{place}/stream", None, options)
        try:
            with stream:
                for event in stream:
                    if is_run_over(event.data):
                        return event.data
        except QuarryError as error:
            # A run that an event or a schedule started has no stream.
            if error.status != 404:
                raise

    def look() -> types.AutomationRun:
        found: types.AutomationRun = connection.call("GET", place, options=options)
        return found

    return poll(look, is_run_over, seconds, options)


def is_extraction_over(extraction: types.Extraction) -> bool:
    return extraction["state"] != "running"


def extraction_end(
    connection: Connection,
    extraction: types.Extraction,
    options: Optional[CallOptions],
    seconds: Optional[float] = None,
) -> types.Extraction:
    if is_extraction_over(extraction):
        return extraction
    place = path("/api/v1/extractions/{}", extraction["id"])
    if seconds is None:
        stream: EventStream[types.Extraction] = EventStream(connection, f"{place}/stream", None, options)
        with stream:
            for event in stream:
                if is_extraction_over(event.data):
                    break

    def look() -> types.Extraction:
        found: types.Extraction = connection.call("GET", place, options=options)
        return found

    return poll(look, is_extraction_over, seconds, options)


def is_ingestion_over(ingestion: types.KnowledgeIngestion) -> bool:
    return ingestion["status"] in ("succeeded", "failed")


def ingestion_end(
    connection: Connection,
    ingestion: types.KnowledgeIngestion,
    options: Optional[CallOptions],
    seconds: Optional[float] = None,
) -> types.KnowledgeIngestion:
    if is_ingestion_over(ingestion):
        return ingestion
    place = path("/api/v1/knowledge_ingestions/{}", ingestion["id"])
    if seconds is None:
        stream: EventStream[types.KnowledgeIngestion] = EventStream(
            connection, f"{place}/stream", None, options
        )
        with stream:
            for event in stream:
                if is_ingestion_over(event.data):
                    break

    def look() -> types.KnowledgeIngestion:
        found: types.KnowledgeIngestion = connection.call("GET", place, options=options)
        return found

    return poll(look, is_ingestion_over, seconds, options)
