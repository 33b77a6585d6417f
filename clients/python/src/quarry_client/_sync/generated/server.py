# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Optional

from ... import types
from ..connection import Connection
from ..runtime import CallOptions


class ServerOperations:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def health(self, options: Optional[CallOptions] = None) -> types.GetHealthResponse:
        """Check that the process is alive."""
        response: types.GetHealthResponse = self._connection.call("GET", "/healthz", options=options)
        return response

    def readiness(self, options: Optional[CallOptions] = None) -> types.GetReadinessResponse:
        """Check that the server can handle requests."""
        response: types.GetReadinessResponse = self._connection.call("GET", "/readyz", options=options)
        return response
