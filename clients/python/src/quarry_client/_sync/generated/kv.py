# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Any, List, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import Connection, EventStream, Pages
from ..runtime import CallOptions


class KvOperations:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        user: Maybe[str] = OMIT,
        user_search: Maybe[str] = OMIT,
        key: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.KvListEntry, types.ListKvEntriesResponse]:
        """List entries.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param user: Only entries of this user.
        :param user_search: Substring of the user's e-mail or full name, case-insensitive.
        :param key: Only entries whose key begins with this literal prefix.
        """
        return Pages(self._connection, "/api/v1/kv", given(page=page, page_size=page_size, user=user, user_search=user_search, key=key), options)

    def get(
        self,
        key: str,
        *,
        user: Maybe[str] = OMIT,
        if_none_match: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KvEntry:
        """Get an entry.

        :param user: The user (`usr_…`). Required for developers and secret keys, ignored for end users.
        :param if_none_match: A write applies only if the resource does not have this tag, or with `*` if it does not exist; otherwise 412. A read returns 304 if the resource has this tag.
        """
        response: types.KvEntry = self._connection.call("GET", path("/api/v1/kv/{}", key), query=given(user=user), headers=given(**{"If-None-Match": if_none_match}), options=options)
        return response

    def put(
        self,
        key: str,
        *,
        value: str,
        ttl_seconds: Maybe[int] = OMIT,
        user: Maybe[Any] = OMIT,
        if_match: Maybe[str] = OMIT,
        if_none_match: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KvEntry:
        """Create or overwrite an entry.

        :param value: Any non-empty string, by default up to 1 MiB in UTF-8.
        :param ttl_seconds: Seconds until the entry expires. Without it, the entry does not expire.
        :param user: The user (`usr_…`). Required for developers and secret keys, ignored for end users.
        :param if_match: Applies the request only if the resource has this entity tag, or with `*` if it exists; otherwise 412.
        :param if_none_match: A write applies only if the resource does not have this tag, or with `*` if it does not exist; otherwise 412. A read returns 304 if the resource has this tag.
        """
        response: types.KvEntry = self._connection.call("PUT", path("/api/v1/kv/{}", key), body=given(value=value, ttl_seconds=ttl_seconds, user=user), headers=given(**{"If-Match": if_match, "If-None-Match": if_none_match}), options=options)
        return response

    def create(
        self,
        *,
        key: str,
        value: str,
        ttl_seconds: Maybe[int] = OMIT,
        user: Maybe[Any] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KvEntry:
        """Create an entry.

        :param key: Any non-empty string, by default up to 1,024 bytes in UTF-8.
        :param value: Any non-empty string, by default up to 1 MiB in UTF-8.
        :param ttl_seconds: Seconds until the entry expires. Without it, the entry does not expire.
        :param user: The user (`usr_…`). Required for developers and secret keys, ignored for end users.
        """
        response: types.KvEntry = self._connection.call("POST", "/api/v1/kv", body=given(key=key, value=value, ttl_seconds=ttl_seconds, user=user), keyed=True, options=options)
        return response

    def delete(
        self,
        key: str,
        *,
        user: Maybe[str] = OMIT,
        if_match: Maybe[str] = OMIT,
        if_none_match: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> None:
        """Delete an entry.

        :param user: The user (`usr_…`). Required for developers and secret keys, ignored for end users.
        :param if_match: Applies the request only if the resource has this entity tag, or with `*` if it exists; otherwise 412.
        :param if_none_match: A write applies only if the resource does not have this tag, or with `*` if it does not exist; otherwise 412. A read returns 304 if the resource has this tag.
        """
        self._connection.call("DELETE", path("/api/v1/kv/{}", key), query=given(user=user), headers=given(**{"If-Match": if_match, "If-None-Match": if_none_match}), options=options)

    def entries(
        self,
        *,
        prefix: Maybe[str] = OMIT,
        cursor: Maybe[str] = OMIT,
        limit: Maybe[int] = OMIT,
        user: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.KvEntry, types.ListKvEntriesByKeyResponse]:
        """List a user's entries by key.

        :param prefix: Only keys with this literal prefix.
        :param cursor: Continues after the page that returned it as `next_cursor`.
        :param limit: Entries per page. Default 100.
        :param user: The user (`usr_…`). Required for developers and secret keys, ignored for end users.
        """
        return Pages(self._connection, "/api/v1/kv_entries", given(prefix=prefix, cursor=cursor, limit=limit, user=user), options)

    def increment(
        self,
        *,
        key: str,
        by: Maybe[int] = OMIT,
        ttl_seconds: Maybe[int] = OMIT,
        user: Maybe[Any] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KvEntry:
        """Add to a number.

        :param key: The key.
        :param by: The number to add; may be negative. Default 1.
        :param ttl_seconds: Sets when the entry expires. Without it, the expiry of an existing entry stays as it is.
        :param user: The user (`usr_…`). Required for developers and secret keys, ignored for end users.
        """
        response: types.KvEntry = self._connection.call("POST", "/api/v1/kv_increment", body=given(key=key, by=by, ttl_seconds=ttl_seconds, user=user), keyed=True, options=options)
        return response

    def batch(
        self,
        *,
        operations: List[types.BatchKvEntriesRequestOperations],
        user: Maybe[Any] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.BatchKvEntriesResponse:
        """Change several entries in one request.

        :param operations: The operations, in order. All of them take effect, or none.
        :param user: The user (`usr_…`). Required for developers and secret keys, ignored for end users.
        """
        response: types.BatchKvEntriesResponse = self._connection.call("POST", "/api/v1/kv_batch", body=given(operations=operations, user=user), keyed=True, options=options)
        return response

    def watch(
        self,
        *,
        key: Maybe[str] = OMIT,
        prefix: Maybe[str] = OMIT,
        user: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> EventStream[Any]:
        """Follow changes of a user's entries.

        :param key: Only this key.
        :param prefix: Only keys with this literal prefix.
        :param user: The user (`usr_…`). Required for developers and secret keys, ignored for end users.
        """
        return EventStream(self._connection, "/api/v1/kv_watch", given(key=key, prefix=prefix, user=user), options)
