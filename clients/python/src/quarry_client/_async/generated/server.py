# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Optional

from ... import types
from ..connection import AsyncConnection
from ..runtime import CallOptions


class AsyncServerOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def health(self, options: Optional[CallOptions] = None) -> types.GetHealthResponse:
        """Check that the process is alive."""
        response: types.GetHealthResponse = await self._connection.call("GET", "/healthz", options=options)
        return response

    async def readiness(self, options: Optional[CallOptions] = None) -> types.GetReadinessResponse:
        """Check that the server can handle requests."""
        response: types.GetReadinessResponse = await self._connection.call("GET", "/readyz", options=options)
        return response
