# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Any, Dict, List, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import Connection, Pages
from ..runtime import CallOptions


class ThreadsOperations:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(
        self,
        *,
        title: Maybe[str] = OMIT,
        user: Maybe[str] = OMIT,
        team: Maybe[str] = OMIT,
        agent: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Thread:
        """Create a thread.

        :param title: The title.
        :param user: The user (`usr_…`).
        :param team: The team (`tea_…`).
        :param agent: The agent that owns it, or that it is about.
        :param org: The organisation (`org_…`).
        """
        response: types.Thread = self._connection.call("POST", "/api/v1/threads", body=given(title=title, user=user, team=team, agent=agent, org=org), keyed=True, options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.Thread, types.ThreadPage]:
        """List threads.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return Pages(self._connection, "/api/v1/threads", given(page=page, page_size=page_size), options)

    def get(self, thread: str, options: Optional[CallOptions] = None) -> types.Thread:
        """Get a thread."""
        response: types.Thread = self._connection.call("GET", path("/api/v1/threads/{}", thread), options=options)
        return response

    def update(
        self,
        thread: str,
        *,
        title: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Thread:
        """Update a thread.

        :param title: The title.
        """
        response: types.Thread = self._connection.call("PATCH", path("/api/v1/threads/{}", thread), body=given(title=title), options=options)
        return response

    def delete(self, thread: str, options: Optional[CallOptions] = None) -> None:
        """Delete a thread."""
        self._connection.call("DELETE", path("/api/v1/threads/{}", thread), options=options)

    def create_message(
        self,
        thread: str,
        *,
        content: str,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.CreateThreadMessageResponse:
        """Post a message to a thread.

        :param content: The text.
        :param metadata: Free key-value map.
        """
        response: types.CreateThreadMessageResponse = self._connection.call("POST", path("/api/v1/threads/{}/messages", thread), body=given(content=content, metadata=metadata), keyed=True, options=options)
        return response
