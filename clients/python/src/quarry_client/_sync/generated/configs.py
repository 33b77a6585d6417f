# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import List, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import Connection, Pages
from ..runtime import CallOptions


class ConfigsOperations:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        agent: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        prefix: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.ConfigEntry, types.ConfigEntryPage]:
        """List config entries.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param agent: Paths of this agent instead of the caller’s.
        :param org: Paths of this organisation instead of the caller’s.
        :param prefix: Only paths that begin with this text.
        """
        return Pages(self._connection, "/api/v1/config", given(page=page, page_size=page_size, agent=agent, org=org, prefix=prefix), options)

    def get(
        self,
        path_: str,
        *,
        agent: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        version: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.ConfigEntry:
        """Read a config entry.

        :param agent: Paths of this agent instead of the caller’s.
        :param org: Paths of this organisation instead of the caller’s.
        :param version: The number of the version. Default: the current one.
        """
        response: types.ConfigEntry = self._connection.call("GET", path("/api/v1/config/{}", path_.split("/")), query=given(agent=agent, org=org, version=version), options=options)
        return response

    def put(
        self,
        path_: str,
        *,
        content: str,
        agent: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        content_type: Maybe[str] = OMIT,
        if_version: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.ConfigEntry:
        """Write a config entry.

        :param content: The text, of at most 262144 bytes in UTF-8.
        :param agent: The agent (agt_…) that owns the path.
        :param org: The organisation (org_…) that owns the path.
        :param content_type: Its media type. Default `text/plain`.
        :param if_version: Write only if this is the current version; 0: only if the path does not exist. Otherwise 412.
        """
        response: types.ConfigEntry = self._connection.call("PUT", path("/api/v1/config/{}", path_.split("/")), body=given(agent=agent, org=org, content=content, content_type=content_type, if_version=if_version), options=options)
        return response

    def delete(
        self,
        path_: str,
        *,
        agent: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> None:
        """Delete a config entry.

        :param agent: Paths of this agent instead of the caller’s.
        :param org: Paths of this organisation instead of the caller’s.
        """
        self._connection.call("DELETE", path("/api/v1/config/{}", path_.split("/")), query=given(agent=agent, org=org), options=options)
