# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import AsyncConnection, AsyncEventStream, AsyncPages
from ..runtime import CallOptions
from ..waiting import extraction_end


class AsyncExtractionsOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self,
        *,
        destination_kind: Literal["config", "storage"],
        destination_path: Maybe[str] = OMIT,
        file: Maybe[str] = OMIT,
        url: Maybe[str] = OMIT,
        mode: Maybe[Literal["link", "site"]] = OMIT,
        max_pages: Maybe[int] = OMIT,
        include_paths: Maybe[List[str]] = OMIT,
        exclude_paths: Maybe[List[str]] = OMIT,
        max_depth: Maybe[int] = OMIT,
        allow_subdomains: Maybe[bool] = OMIT,
        ignore_robots: Maybe[bool] = OMIT,
        sitemap: Maybe[Literal["include", "skip", "only"]] = OMIT,
        schema: Maybe[Dict[str, Any]] = OMIT,
        instructions: Maybe[str] = OMIT,
        model: Maybe[str] = OMIT,
        agent: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Extraction:
        """Turn a document, a page or a site into Markdown.

        :param destination_kind: Where outputs are written.
        :param destination_path: The path prefix of the outputs. Required if `destination_kind` is config.
        :param file: fil_…; the document to read.
        :param url: The page or site to read.
        :param mode: `link` for one page, `site` for a whole site.
        :param max_pages: Maximum number of pages of a site. Default 100.
        :param include_paths: Only pages whose path matches one of these are read. Patterns are prefixes, in which * matches anything and a final $ matches the end.
        :param exclude_paths: Pages whose path matches one of these are not read. Patterns are prefixes, in which * matches anything and a final $ matches the end.
        :param max_depth: Maximum number of links from the start page.
        :param allow_subdomains: Also read pages on subdomains of the start page’s host.
        :param ignore_robots: Read pages that robots.txt disallows. Requires a secret key.
        :param sitemap: Whether to use sitemaps to find pages. Default include.
        :param schema: A JSON Schema (2020-12) for data that a language model extracts from each text; at most 64 KiB. References must stay within the schema. The extraction then always runs in the background (202).
        :param instructions: Instructions for extracting the data. Requires schema.
        :param model: The model or alias that extracts the data. Default: as the operator set it. Requires schema.
        :param agent: agt_…; the agent that owns the job and its outputs.
        :param org: org_…
        """
        response: types.Extraction = await self._connection.call("POST", "/api/v1/extractions", body=given(destination_kind=destination_kind, destination_path=destination_path, file=file, url=url, mode=mode, max_pages=max_pages, include_paths=include_paths, exclude_paths=exclude_paths, max_depth=max_depth, allow_subdomains=allow_subdomains, ignore_robots=ignore_robots, sitemap=sitemap, schema=schema, instructions=instructions, model=model, agent=agent, org=org), keyed=True, options=options)
        return response

    async def run(
        self,
        *,
        destination_kind: Literal["config", "storage"],
        destination_path: Maybe[str] = OMIT,
        file: Maybe[str] = OMIT,
        url: Maybe[str] = OMIT,
        mode: Maybe[Literal["link", "site"]] = OMIT,
        max_pages: Maybe[int] = OMIT,
        include_paths: Maybe[List[str]] = OMIT,
        exclude_paths: Maybe[List[str]] = OMIT,
        max_depth: Maybe[int] = OMIT,
        allow_subdomains: Maybe[bool] = OMIT,
        ignore_robots: Maybe[bool] = OMIT,
        sitemap: Maybe[Literal["include", "skip", "only"]] = OMIT,
        schema: Maybe[Dict[str, Any]] = OMIT,
        instructions: Maybe[str] = OMIT,
        model: Maybe[str] = OMIT,
        agent: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Extraction:
        """Create an extraction, and wait until it has ended.

        :param destination_kind: Where outputs are written.
        :param destination_path: The path prefix of the outputs. Required if `destination_kind` is config.
        :param file: fil_…; the document to read.
        :param url: The page or site to read.
        :param mode: `link` for one page, `site` for a whole site.
        :param max_pages: Maximum number of pages of a site. Default 100.
        :param include_paths: Only pages whose path matches one of these are read. Patterns are prefixes, in which * matches anything and a final $ matches the end.
        :param exclude_paths: Pages whose path matches one of these are not read. Patterns are prefixes, in which * matches anything and a final $ matches the end.
        :param max_depth: Maximum number of links from the start page.
        :param allow_subdomains: Also read pages on subdomains of the start page’s host.
        :param ignore_robots: Read pages that robots.txt disallows. Requires a secret key.
        :param sitemap: Whether to use sitemaps to find pages. Default include.
        :param schema: A JSON Schema (2020-12) for data that a language model extracts from each text; at most 64 KiB. References must stay within the schema. The extraction then always runs in the background (202).
        :param instructions: Instructions for extracting the data. Requires schema.
        :param model: The model or alias that extracts the data. Default: as the operator set it. Requires schema.
        :param agent: agt_…; the agent that owns the job and its outputs.
        :param org: org_…
        """
        response: types.Extraction = await self._connection.call("POST", "/api/v1/extractions", body=given(destination_kind=destination_kind, destination_path=destination_path, file=file, url=url, mode=mode, max_pages=max_pages, include_paths=include_paths, exclude_paths=exclude_paths, max_depth=max_depth, allow_subdomains=allow_subdomains, ignore_robots=ignore_robots, sitemap=sitemap, schema=schema, instructions=instructions, model=model, agent=agent, org=org), keyed=True, options=options)
        return await extraction_end(self._connection, response, options)

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        kind: Maybe[Literal["document", "link", "site"]] = OMIT,
        state: Maybe[Literal["running", "done", "failed"]] = OMIT,
        agent: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.Extraction, types.ExtractionPage]:
        """List extractions.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param kind: Only those of this kind.
        :param state: Only those in this state.
        :param agent: agt_…
        """
        return AsyncPages(self._connection, "/api/v1/extractions", given(page=page, page_size=page_size, kind=kind, state=state, agent=agent), options)

    async def get(self, extraction: str, options: Optional[CallOptions] = None) -> types.Extraction:
        """Get an extraction."""
        response: types.Extraction = await self._connection.call("GET", path("/api/v1/extractions/{}", extraction), options=options)
        return response

    async def delete(self, extraction: str, options: Optional[CallOptions] = None) -> None:
        """Cancel and delete an extraction."""
        await self._connection.call("DELETE", path("/api/v1/extractions/{}", extraction), options=options)

    def stream(self, extraction: str, options: Optional[CallOptions] = None) -> AsyncEventStream[types.Extraction]:
        """Follow an extraction."""
        return AsyncEventStream(self._connection, path("/api/v1/extractions/{}/stream", extraction), None, options)
