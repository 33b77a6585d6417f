"""Users, and everything that is stored about one."""

from __future__ import annotations

from typing import AsyncIterator, Optional

import httpx

from .._shared import Request, path
from ..errors import QuarryError
from .generated.users import AsyncUsersOperations
from .runtime import CallOptions, check


class AsyncUsers(AsyncUsersOperations):
    """Users, and everything that is stored about one."""

    async def export(self, user: str, *, options: Optional[CallOptions] = None) -> AsyncIterator[bytes]:
        """Everything about a user as a ZIP archive, in pieces. Without its last file, `export.json`, it is incomplete."""
        request = Request("GET", path("/api/v1/users/{}/export", user), streamed=True)
        response = await self._connection.request(request, options)
        try:
            async for piece in response.aiter_bytes():
                check(options)
                yield piece
        except httpx.TransportError as cause:
            raise QuarryError("unreachable", "The response broke off.") from cause
        finally:
            await response.aclose()
