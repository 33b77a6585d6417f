# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import List, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import AsyncConnection, AsyncPages
from ..runtime import CallOptions


class AsyncErasuresOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self,
        *,
        user: Maybe[str] = OMIT,
        document: Maybe[str] = OMIT,
        source: Maybe[str] = OMIT,
        files: Maybe[bool] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Erasure:
        """Erase a user, a document or a source.

        :param user: usr_…
        :param document: cdo_…
        :param source: cso_…
        :param files: Whether the files that the documents were read from are erased too. Default false. Those of a user always are.
        """
        response: types.Erasure = await self._connection.call("POST", "/api/v1/erasures", body=given(user=user, document=document, source=source, files=files), keyed=True, options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.Erasure, types.ErasurePage]:
        """List erasures.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, "/api/v1/erasures", given(page=page, page_size=page_size), options)

    async def get(self, erasure: str, options: Optional[CallOptions] = None) -> types.Erasure:
        """Get an erasure."""
        response: types.Erasure = await self._connection.call("GET", path("/api/v1/erasures/{}", erasure), options=options)
        return response

    async def certificate(self, erasure: str, options: Optional[CallOptions] = None) -> types.ErasureCertificate:
        """Get the certificate of an erasure."""
        response: types.ErasureCertificate = await self._connection.call("GET", path("/api/v1/erasures/{}/certificate", erasure), options=options)
        return response
