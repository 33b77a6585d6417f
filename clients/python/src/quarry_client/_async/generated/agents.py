# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import AsyncConnection, AsyncPages
from ..runtime import CallOptions


class AsyncAgentsOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self,
        *,
        name: str,
        lookup_key: Maybe[str] = OMIT,
        description: Maybe[str] = OMIT,
        identity: Maybe[str] = OMIT,
        model: Maybe[str] = OMIT,
        email: Maybe[str] = OMIT,
        phone_number: Maybe[str] = OMIT,
        originator: Maybe[str] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        profile_picture: Maybe[Optional[types.Picture]] = OMIT,
        org: Maybe[str] = OMIT,
        team: Maybe[str] = OMIT,
        user: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Agent:
        """Create an agent.

        :param name: The name.
        :param lookup_key: Your own name for the agent, unique for its owner. Must not look like an id.
        :param description: A text for people.
        :param identity: Who the agent is, as a prompt for a language model.
        :param model: The model that the agent uses by default.
        :param email: The email address.
        :param phone_number: The telephone number.
        :param originator: A text of your own that says where the agent comes from.
        :param metadata: Stored unchanged; replaces the whole map.
        :param profile_picture: The picture.
        :param org: org_…
        :param team: tem_…
        :param user: usr_…
        """
        response: types.Agent = await self._connection.call("POST", "/api/v1/agents", body=given(name=name, lookup_key=lookup_key, description=description, identity=identity, model=model, email=email, phone_number=phone_number, originator=originator, metadata=metadata, profile_picture=profile_picture, org=org, team=team, user=user), keyed=True, options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        search: Maybe[str] = OMIT,
        user: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.Agent, types.AgentPage]:
        """List agents.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param search: Part of the name or the lookup key.
        :param user: Agents of this user.
        :param org: Agents of this organisation.
        """
        return AsyncPages(self._connection, "/api/v1/agents", given(page=page, page_size=page_size, search=search, user=user, org=org), options)

    async def get(self, agent: str, options: Optional[CallOptions] = None) -> types.Agent:
        """Get an agent."""
        response: types.Agent = await self._connection.call("GET", path("/api/v1/agents/{}", agent), options=options)
        return response

    async def update(
        self,
        agent: str,
        *,
        name: Maybe[str] = OMIT,
        lookup_key: Maybe[str] = OMIT,
        description: Maybe[str] = OMIT,
        identity: Maybe[str] = OMIT,
        model: Maybe[str] = OMIT,
        email: Maybe[str] = OMIT,
        phone_number: Maybe[str] = OMIT,
        originator: Maybe[str] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        profile_picture: Maybe[Optional[types.Picture]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Agent:
        """Update an agent.

        :param name: The name.
        :param lookup_key: Your own name for the agent, unique for its owner. Must not look like an id.
        :param description: A text for people.
        :param identity: Who the agent is, as a prompt for a language model.
        :param model: The model that the agent uses by default.
        :param email: The email address.
        :param phone_number: The telephone number.
        :param originator: A text of your own that says where the agent comes from.
        :param metadata: Stored unchanged; replaces the whole map.
        :param profile_picture: The picture.
        """
        response: types.Agent = await self._connection.call("PATCH", path("/api/v1/agents/{}", agent), body=given(name=name, lookup_key=lookup_key, description=description, identity=identity, model=model, email=email, phone_number=phone_number, originator=originator, metadata=metadata, profile_picture=profile_picture), options=options)
        return response

    async def delete(self, agent: str, options: Optional[CallOptions] = None) -> None:
        """Delete an agent."""
        await self._connection.call("DELETE", path("/api/v1/agents/{}", agent), options=options)

    async def search(
        self,
        agent: str,
        *,
        query: str,
        mode: Maybe[Literal["hybrid", "vector", "fulltext"]] = OMIT,
        max_results: Maybe[int] = OMIT,
        min_similarity: Maybe[float] = OMIT,
        recency_days: Maybe[float] = OMIT,
        filter: Maybe[Dict[str, Any]] = OMIT,
        explain: Maybe[bool] = OMIT,
        rerank: Maybe[bool] = OMIT,
        rerank_model: Maybe[str] = OMIT,
        highlights: Maybe[bool] = OMIT,
        context: Maybe[int] = OMIT,
        group_by: Maybe[Literal["document"]] = OMIT,
        facets: Maybe[List[str]] = OMIT,
        source_types: Maybe[List[str]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.SearchAgentKnowledgeResponse:
        """Search everything that an agent owns.

        :param query: The text to search for.
        :param mode: Default hybrid.
        :param max_results: Default 20.
        :param min_similarity: Minimum cosine similarity of vector hits.
        :param recency_days: Only documents that were indexed within this many days.
        :param filter: Conditions on document metadata.
        :param explain: How the score came about, if the search asked for it.
        :param rerank: Whether to rerank. Default true in mode hybrid if the server has a reranker.
        :param rerank_model: A model for reranking, or an alias, that orders the results instead of the server’s reranker.
        :param highlights: Whether to return the positions of the query's words in each hit.
        :param context: Number of neighbouring chunks to return on either side of each hit.
        :param group_by: Returns only the best hit of each document.
        :param facets: Members of document metadata whose values to count.
        :param source_types: Only sources of these types.
        """
        response: types.SearchAgentKnowledgeResponse = await self._connection.call("POST", path("/api/v1/agents/{}/search", agent), body=given(query=query, mode=mode, max_results=max_results, min_similarity=min_similarity, recency_days=recency_days, filter=filter, explain=explain, rerank=rerank, rerank_model=rerank_model, highlights=highlights, context=context, group_by=group_by, facets=facets, source_types=source_types), keyed=True, options=options)
        return response
