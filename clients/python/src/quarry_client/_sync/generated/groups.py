# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import List, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import Connection, Pages
from ..runtime import CallOptions


class GroupsOperations:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(
        self,
        *,
        namespace: str,
        external_id: str,
        name: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Group:
        """Create a group of users.

        :param namespace: Who names the group: an issuer, a connector, or your own word. The same name elsewhere is another group.
        :param external_id: The name of the group in its namespace, which never changes.
        :param name: The name.
        """
        response: types.Group = self._connection.call("POST", "/api/v1/groups", body=given(namespace=namespace, external_id=external_id, name=name), keyed=True, options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        namespace: Maybe[str] = OMIT,
        external_id: Maybe[str] = OMIT,
        user: Maybe[str] = OMIT,
        search: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.Group, types.GroupPage]:
        """List groups of users.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param namespace: Only groups of this namespace.
        :param external_id: Only groups with this name.
        :param user: Only groups of this user (usr_…).
        :param search: Part of the name or of the name in the namespace.
        """
        return Pages(self._connection, "/api/v1/groups", given(page=page, page_size=page_size, namespace=namespace, external_id=external_id, user=user, search=search), options)

    def get(self, group: str, options: Optional[CallOptions] = None) -> types.Group:
        """Get a group of users."""
        response: types.Group = self._connection.call("GET", path("/api/v1/groups/{}", group), options=options)
        return response

    def update(
        self,
        group: str,
        *,
        name: Maybe[Optional[str]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Group:
        """Update a group of users.

        :param name: The name.
        """
        response: types.Group = self._connection.call("PATCH", path("/api/v1/groups/{}", group), body=given(name=name), options=options)
        return response

    def delete(self, group: str, options: Optional[CallOptions] = None) -> None:
        """Delete a group of users."""
        self._connection.call("DELETE", path("/api/v1/groups/{}", group), options=options)

    def list_members(
        self,
        group: str,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.GroupMember, types.GroupMemberPage]:
        """List the members of a group.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return Pages(self._connection, path("/api/v1/groups/{}/members", group), given(page=page, page_size=page_size), options)

    def add_member(
        self,
        group: str,
        *,
        user: str,
        options: Optional[CallOptions] = None,
    ) -> types.GroupMember:
        """Add a user to a group.

        :param user: usr_…
        """
        response: types.GroupMember = self._connection.call("POST", path("/api/v1/groups/{}/members", group), body=given(user=user), keyed=True, options=options)
        return response

    def set_members(self, group: str, *, users: List[str], options: Optional[CallOptions] = None) -> None:
        """Replace the members of a group.

        :param users: The users (usr_…) who are the members from now on.
        """
        self._connection.call("PUT", path("/api/v1/groups/{}/members", group), body=given(users=users), options=options)

    def remove_member(self, group: str, user: str, options: Optional[CallOptions] = None) -> None:
        """Remove a user from a group."""
        self._connection.call("DELETE", path("/api/v1/groups/{}/members/{}", group, user), options=options)
