# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import List, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import AsyncConnection, AsyncPages
from ..runtime import CallOptions


class AsyncOrgsOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self,
        *,
        name: str,
        slug: Maybe[str] = OMIT,
        logo: Maybe[Optional[types.Picture]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Org:
        """Create an organisation.

        :param name: The name.
        :param slug: Unique within the app.
        :param logo: The logo.
        """
        response: types.Org = await self._connection.call("POST", "/api/v1/orgs", body=given(name=name, slug=slug, logo=logo), keyed=True, options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        search: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.Org, types.OrgPage]:
        """List organisations.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param search: Only those whose name or address contains this text.
        """
        return AsyncPages(self._connection, "/api/v1/orgs", given(page=page, page_size=page_size, search=search), options)

    async def get(self, org: str, options: Optional[CallOptions] = None) -> types.Org:
        """Get an organisation."""
        response: types.Org = await self._connection.call("GET", path("/api/v1/orgs/{}", org), options=options)
        return response

    async def update(
        self,
        org: str,
        *,
        name: Maybe[str] = OMIT,
        slug: Maybe[str] = OMIT,
        logo: Maybe[Optional[types.Picture]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Org:
        """Update an organisation.

        :param name: The name.
        :param slug: Unique within the app.
        :param logo: The logo.
        """
        response: types.Org = await self._connection.call("PATCH", path("/api/v1/orgs/{}", org), body=given(name=name, slug=slug, logo=logo), options=options)
        return response

    async def delete(self, org: str, options: Optional[CallOptions] = None) -> None:
        """Delete an organisation."""
        await self._connection.call("DELETE", path("/api/v1/orgs/{}", org), options=options)
