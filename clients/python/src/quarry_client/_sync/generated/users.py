# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import Connection, Pages
from ..runtime import CallOptions


class UsersOperations:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def me(self, options: Optional[CallOptions] = None) -> types.User:
        """Get the calling user."""
        response: types.User = self._connection.call("GET", "/api/v1/users/me", options=options)
        return response

    def create(
        self,
        *,
        email: str,
        name: Maybe[str] = OMIT,
        password: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        org_role: Maybe[Literal["admin", "member", "viewer"]] = OMIT,
        is_system_user: Maybe[bool] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.User:
        """Create a user.

        :param email: Unique in the app or sandbox.
        :param name: The name.
        :param password: The password.
        :param org: org_…
        :param org_role: The role in the organisation.
        :param is_system_user: Whether the user represents a program.
        :param metadata: Stored unchanged.
        """
        response: types.User = self._connection.call("POST", "/api/v1/users", body=given(email=email, name=name, password=password, org=org, org_role=org_role, is_system_user=is_system_user, metadata=metadata), keyed=True, options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        search: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.User, types.UserPage]:
        """List users.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param search: Only those whose name or address contains this text.
        :param org: Only those of this organisation (`org_…`).
        """
        return Pages(self._connection, "/api/v1/users", given(page=page, page_size=page_size, search=search, org=org), options)

    def get(self, user: str, options: Optional[CallOptions] = None) -> types.User:
        """Get a user."""
        response: types.User = self._connection.call("GET", path("/api/v1/users/{}", user), options=options)
        return response

    def update(
        self,
        user: str,
        *,
        email: Maybe[str] = OMIT,
        name: Maybe[str] = OMIT,
        password: Maybe[str] = OMIT,
        org: Maybe[Optional[str]] = OMIT,
        org_role: Maybe[Literal["admin", "member", "viewer"]] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.User:
        """Update a user.

        :param email: Unique in the app or sandbox.
        :param name: The name.
        :param password: The password.
        :param org: The organisation (`org_…`).
        :param org_role: The role in the organisation.
        :param metadata: Replaces the whole map.
        """
        response: types.User = self._connection.call("PATCH", path("/api/v1/users/{}", user), body=given(email=email, name=name, password=password, org=org, org_role=org_role, metadata=metadata), options=options)
        return response

    def delete(self, user: str, options: Optional[CallOptions] = None) -> None:
        """Delete a user."""
        self._connection.call("DELETE", path("/api/v1/users/{}", user), options=options)

    def create_token(
        self,
        user: str,
        *,
        type: Maybe[Literal["session", "personal"]] = OMIT,
        name: Maybe[str] = OMIT,
        expires_in_days: Maybe[int] = OMIT,
        scopes: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.MintedToken:
        """Create a token for a user.

        :param type: Default: session, or personal for end users.
        :param name: The name.
        :param expires_in_days: For personal tokens. Default 30.
        :param scopes: Only full_access is supported.
        """
        response: types.MintedToken = self._connection.call("POST", path("/api/v1/users/{}/tokens", user), body=given(type=type, name=name, expires_in_days=expires_in_days, scopes=scopes), options=options)
        return response

    def list_tokens(self, user: str, options: Optional[CallOptions] = None) -> types.ListUserTokensResponse:
        """List a user's personal tokens."""
        response: types.ListUserTokensResponse = self._connection.call("GET", path("/api/v1/users/{}/tokens", user), options=options)
        return response

    def revoke_token(self, user: str, token: str, options: Optional[CallOptions] = None) -> None:
        """Revoke a personal token."""
        self._connection.call("DELETE", path("/api/v1/users/{}/tokens/{}", user, token), options=options)

    def revoke_sessions(self, user: str, options: Optional[CallOptions] = None) -> None:
        """End every session and token of a user."""
        self._connection.call("POST", path("/api/v1/users/{}/sessions/revoke", user), keyed=True, options=options)
