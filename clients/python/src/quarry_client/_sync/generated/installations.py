# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import List, Literal, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import Connection, Pages
from ..runtime import CallOptions


class InstallationsOperations:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(
        self,
        *,
        agent: str,
        kind: Literal["webhook/inbound", "thread/messages"],
        options: Optional[CallOptions] = None,
    ) -> types.Installation:
        """Create an installation.

        :param agent: agt_…
        :param kind: The kind.
        """
        response: types.Installation = self._connection.call("POST", "/api/v1/installations", body=given(agent=agent, kind=kind), keyed=True, options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.Installation, types.InstallationPage]:
        """List installations.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return Pages(self._connection, "/api/v1/installations", given(page=page, page_size=page_size), options)

    def get(self, installation: str, options: Optional[CallOptions] = None) -> types.Installation:
        """Get an installation."""
        response: types.Installation = self._connection.call("GET", path("/api/v1/installations/{}", installation), options=options)
        return response

    def update(self, installation: str, options: Optional[CallOptions] = None) -> types.Installation:
        """Update an installation."""
        response: types.Installation = self._connection.call("PATCH", path("/api/v1/installations/{}", installation), body={}, options=options)
        return response

    def delete(self, installation: str, options: Optional[CallOptions] = None) -> None:
        """Delete an installation."""
        self._connection.call("DELETE", path("/api/v1/installations/{}", installation), options=options)
