# Written by scripts/python-client.ts. Do not edit: npm run clients
"""Users, and everything that is stored about one."""

from __future__ import annotations

from typing import Iterator, Optional

from .._shared import Request, path
from .generated.users import UsersOperations
from .runtime import CallOptions


class Users(UsersOperations):
    """Users, and everything that is stored about one."""

    def export(self, user: str, *, options: Optional[CallOptions] = None) -> Iterator[bytes]:
        """Everything about a user as a ZIP archive, in pieces. Without its last file, `export.json`, it is incomplete."""
        request = Request("GET", path("/api/v1/users/{}/export", user), streamed=True)
        for piece in self._connection.pieces(request, options):
            yield piece
