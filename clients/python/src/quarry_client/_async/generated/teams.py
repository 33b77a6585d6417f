# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import AsyncConnection, AsyncPages
from ..runtime import CallOptions


class AsyncTeamsOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self,
        *,
        name: str,
        description: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Team:
        """Create a team.

        :param name: The name.
        :param description: A text for people.
        :param org: org_…
        :param metadata: Stored unchanged.
        """
        response: types.Team = await self._connection.call("POST", "/api/v1/teams", body=given(name=name, description=description, org=org, metadata=metadata), keyed=True, options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        search: Maybe[str] = OMIT,
        membership: Maybe[Literal["joined", "joinable"]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.Team, types.TeamPage]:
        """List teams.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param search: Part of the name or the description.
        :param membership: Only teams in which the caller is a member (`joined`), or that the caller may join (`joinable`).
        """
        return AsyncPages(self._connection, "/api/v1/teams", given(page=page, page_size=page_size, search=search, membership=membership), options)

    async def get(self, team: str, options: Optional[CallOptions] = None) -> types.Team:
        """Get a team."""
        response: types.Team = await self._connection.call("GET", path("/api/v1/teams/{}", team), options=options)
        return response

    async def update(
        self,
        team: str,
        *,
        name: Maybe[str] = OMIT,
        description: Maybe[str] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Team:
        """Update a team.

        :param name: The name.
        :param description: A text for people.
        :param metadata: Replaces the whole map.
        """
        response: types.Team = await self._connection.call("PATCH", path("/api/v1/teams/{}", team), body=given(name=name, description=description, metadata=metadata), options=options)
        return response

    async def delete(self, team: str, options: Optional[CallOptions] = None) -> None:
        """Delete a team."""
        await self._connection.call("DELETE", path("/api/v1/teams/{}", team), options=options)

    def list_members(
        self,
        team: str,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.Membership, types.MembershipPage]:
        """List the members of a team.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, path("/api/v1/teams/{}/members", team), given(page=page, page_size=page_size), options)

    async def add_member(
        self,
        team: str,
        *,
        user: Maybe[str] = OMIT,
        agent: Maybe[str] = OMIT,
        role: Maybe[Literal["owner", "admin", "member"]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Membership:
        """Add a user or an agent to a team.

        :param user: usr_…
        :param agent: agt_…
        :param role: The role.
        """
        response: types.Membership = await self._connection.call("POST", path("/api/v1/teams/{}/members", team), body=given(user=user, agent=agent, role=role), keyed=True, options=options)
        return response

    async def get_member(self, team: str, member: str, options: Optional[CallOptions] = None) -> types.Membership:
        """Get a member of a team."""
        response: types.Membership = await self._connection.call("GET", path("/api/v1/teams/{}/members/{}", team, member), options=options)
        return response

    async def update_member(
        self,
        team: str,
        member: str,
        *,
        role: Literal["owner", "admin", "member"],
        options: Optional[CallOptions] = None,
    ) -> types.Membership:
        """Change a member's role.

        :param role: The role.
        """
        response: types.Membership = await self._connection.call("PATCH", path("/api/v1/teams/{}/members/{}", team, member), body=given(role=role), options=options)
        return response

    async def remove_member(self, team: str, member: str, options: Optional[CallOptions] = None) -> None:
        """Remove a member from a team."""
        await self._connection.call("DELETE", path("/api/v1/teams/{}/members/{}", team, member), options=options)
