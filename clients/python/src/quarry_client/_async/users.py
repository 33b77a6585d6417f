"""Users, and everything that is stored about one."""

from __future__ import annotations

from typing import AsyncIterator, Optional

from .._shared import Request, path
from .generated.users import AsyncUsersOperations
from .runtime import CallOptions


class AsyncUsers(AsyncUsersOperations):
    """Users, and everything that is stored about one."""

    async def export(self, user: str, *, options: Optional[CallOptions] = None) -> AsyncIterator[bytes]:
        """Everything about a user as a ZIP archive, in pieces. Without its last file, `export.json`, it is incomplete."""
        request = Request("GET", path("/api/v1/users/{}/export", user), streamed=True)
        async for piece in self._connection.pieces(request, options):
            yield piece
