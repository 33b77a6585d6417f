# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Any, Optional

from ... import types
from ..._shared import OMIT, Maybe, given
from ..connection import Connection, EventStream
from ..runtime import CallOptions


class EventsOperations:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def emit(
        self,
        *,
        name: str,
        payload: Maybe[Any] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.EmitEventResponse:
        """Emit an event that may start automations.

        :param name: The name.
        :param payload: The data that comes with it.
        """
        response: types.EmitEventResponse = self._connection.call("POST", "/api/v1/events", body=given(name=name, payload=payload), keyed=True, options=options)
        return response

    def stream(self, options: Optional[CallOptions] = None) -> EventStream[Any]:
        """Follow events."""
        return EventStream(self._connection, "/api/v1/events/stream", None, options)
