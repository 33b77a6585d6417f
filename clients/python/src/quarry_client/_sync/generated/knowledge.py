# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import Connection, EventStream, Pages
from ..runtime import CallOptions
from ..waiting import ingestion_end


class KnowledgeOperations:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def search(
        self,
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
        sources: Maybe[List[str]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.SearchKnowledgeResponse:
        """Search everything visible.

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
        :param sources: cso_…; only these sources.
        """
        response: types.SearchKnowledgeResponse = self._connection.call("POST", "/api/v1/knowledge_search", body=given(query=query, mode=mode, max_results=max_results, min_similarity=min_similarity, recency_days=recency_days, filter=filter, explain=explain, rerank=rerank, rerank_model=rerank_model, highlights=highlights, context=context, group_by=group_by, facets=facets, source_types=source_types, sources=sources), keyed=True, options=options)
        return response

    def list_kinds(self, options: Optional[CallOptions] = None) -> types.ListKnowledgeSourceKindsResponse:
        """List the types of sources that can be created."""
        response: types.ListKnowledgeSourceKindsResponse = self._connection.call("GET", "/api/v1/knowledge_sources/kinds", options=options)
        return response

    def list_sources(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        search: Maybe[str] = OMIT,
        type: Maybe[str] = OMIT,
        team: Maybe[List[str]] = OMIT,
        thread: Maybe[List[str]] = OMIT,
        installation: Maybe[str] = OMIT,
        agent: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        owner_scope: Maybe[Literal["any", "individual", "system"]] = OMIT,
        lookup_key: Maybe[str] = OMIT,
        name: Maybe[str] = OMIT,
        include: Maybe[Literal["statistics"]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.KnowledgeSource, types.KnowledgeSourcePage]:
        """List sources.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param search: Part of the type, case-insensitive.
        :param type: Only those of this type.
        :param team: Only those of this team (`tea_…`).
        :param thread: Only those of this thread (`thr_…`).
        :param installation: Only what this installation (`cin_…`) filled.
        :param agent: Only what this agent (`agt_…`) owns.
        :param org: Only those of this organisation (`org_…`).
        :param owner_scope: `individual`: owned by a user, a team or an agent; `system`: all others; `any`: both. Default `any`.
        :param lookup_key: Only the one with this lookup key.
        :param name: Part of `name` in the metadata, or of `url` in the payload, case-insensitive.
        :param include: Adds `statistics` to each source of the page.
        """
        return Pages(self._connection, "/api/v1/knowledge_sources", given(page=page, page_size=page_size, search=search, type=type, team=team, thread=thread, installation=installation, agent=agent, org=org, owner_scope=owner_scope, lookup_key=lookup_key, name=name, include=include), options)

    def create_source(
        self,
        *,
        type: str,
        agent: Maybe[str] = OMIT,
        team: Maybe[str] = OMIT,
        user: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        parent_source: Maybe[str] = OMIT,
        lookup_key: Maybe[Optional[str]] = OMIT,
        credentials: Maybe[Optional[types.CreateKnowledgeSourceRequestCredentials]] = OMIT,
        payload: Maybe[Dict[str, Any]] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        state: Maybe[Literal["active", "paused"]] = OMIT,
        thread: Maybe[str] = OMIT,
        embedder: Maybe[str] = OMIT,
        version_retention_days: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeSource:
        """Create a source.

        :param type: A type from the kinds list.
        :param agent: The agent that owns it, or that it is about.
        :param team: The team (`tea_…`).
        :param user: The user (`usr_…`).
        :param org: The organisation, if it owns the source itself. Not allowed with another owner.
        :param parent_source: The source that it was derived from; null for others.
        :param lookup_key: A name for programs, unique in the app or sandbox.
        :param credentials: What pulls sign in with. They are encrypted, never shown, and sent only to the scheme, host and port of the payload: another address in the payload clears them, and so does another `url` or `bucket` that an end user sets. Null clears them too.
        :param payload: Configuration; its members depend on the type.
        :param metadata: Free key-value map.
        :param state: The state.
        :param thread: The thread (`thr_…`).
        :param embedder: A model for embeddings, or an alias, that computes the vectors of the source. Without one, the installation’s embedder does. Only secret keys and developers set it.
        :param version_retention_days: For how many days versions of documents are kept after they were changed or deleted. By default, none are kept.
        """
        response: types.KnowledgeSource = self._connection.call("POST", "/api/v1/knowledge_sources", body=given(type=type, agent=agent, team=team, user=user, org=org, parent_source=parent_source, lookup_key=lookup_key, credentials=credentials, payload=payload, metadata=metadata, state=state, thread=thread, embedder=embedder, version_retention_days=version_retention_days), keyed=True, options=options)
        return response

    def get_source(self, source: str, options: Optional[CallOptions] = None) -> types.KnowledgeSource:
        """Get a source."""
        response: types.KnowledgeSource = self._connection.call("GET", path("/api/v1/knowledge_sources/{}", source), options=options)
        return response

    def update_source(
        self,
        source: str,
        *,
        lookup_key: Maybe[Optional[str]] = OMIT,
        credentials: Maybe[Optional[types.UpdateKnowledgeSourceRequestCredentials]] = OMIT,
        payload: Maybe[Dict[str, Any]] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        state: Maybe[Literal["active", "paused"]] = OMIT,
        embedder: Maybe[Optional[str]] = OMIT,
        version_retention_days: Maybe[Optional[int]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeSource:
        """Update a source.

        :param lookup_key: A name for programs, unique in the app or sandbox.
        :param credentials: What pulls sign in with. They are encrypted, never shown, and sent only to the scheme, host and port of the payload: another address in the payload clears them, and so does another `url` or `bucket` that an end user sets. Null clears them too.
        :param payload: Replaces the whole payload.
        :param metadata: Replaces the whole map.
        :param state: The state.
        :param embedder: A model for embeddings, or an alias, that computes the vectors of the source; null for the installation’s embedder. The vectors are computed in the background, and searches use the previous ones until all documents have theirs. Only secret keys and developers set it.
        :param version_retention_days: For how many days versions of documents are kept after they were changed or deleted. By default, none are kept. A shorter time applies to existing versions too; null deletes them.
        """
        response: types.KnowledgeSource = self._connection.call("PATCH", path("/api/v1/knowledge_sources/{}", source), body=given(lookup_key=lookup_key, credentials=credentials, payload=payload, metadata=metadata, state=state, embedder=embedder, version_retention_days=version_retention_days), options=options)
        return response

    def delete_source(self, source: str, options: Optional[CallOptions] = None) -> None:
        """Delete a source with everything in it."""
        self._connection.call("DELETE", path("/api/v1/knowledge_sources/{}", source), options=options)

    def search_source(
        self,
        source: str,
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
        options: Optional[CallOptions] = None,
    ) -> types.SearchKnowledgeSourceResponse:
        """Search a source.

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
        """
        response: types.SearchKnowledgeSourceResponse = self._connection.call("POST", path("/api/v1/knowledge_sources/{}/search", source), body=given(query=query, mode=mode, max_results=max_results, min_similarity=min_similarity, recency_days=recency_days, filter=filter, explain=explain, rerank=rerank, rerank_model=rerank_model, highlights=highlights, context=context, group_by=group_by, facets=facets), keyed=True, options=options)
        return response

    def ingest(
        self,
        source: str,
        *,
        content: Maybe[types.IngestIntoKnowledgeSourceRequestContent] = OMIT,
        file: Maybe[str] = OMIT,
        pull: Maybe[bool] = OMIT,
        title: Maybe[str] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        acl: Maybe[types.DocumentAcl] = OMIT,
        dedupe: Maybe[bool] = OMIT,
        on_active: Maybe[Literal["return", "queue", "error"]] = OMIT,
        confirm_deletions: Maybe[bool] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeIngestion:
        """Ingest into a source.

        :param content: The text.
        :param file: The id (fil_…) of an uploaded file.
        :param pull: Pull again from the source's configuration.
        :param title: Display title.
        :param metadata: Free key-value map.
        :param dedupe: Reuse a document with the same bytes and the same readers. Push only.
        :param on_active: What to do while another ingestion of the source is active: return that one (default), queue, or 409.
        :param confirm_deletions: With `pull`: delete what the listing no longer contains, even if it is more than half of the source.
        """
        response: types.KnowledgeIngestion = self._connection.call("POST", path("/api/v1/knowledge_sources/{}/ingest", source), body=given(content=content, file=file, pull=pull, title=title, metadata=metadata, acl=acl, dedupe=dedupe, on_active=on_active, confirm_deletions=confirm_deletions), keyed=True, options=options)
        return response

    def add(
        self,
        source: str,
        *,
        content: Maybe[types.IngestIntoKnowledgeSourceRequestContent] = OMIT,
        file: Maybe[str] = OMIT,
        pull: Maybe[bool] = OMIT,
        title: Maybe[str] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        acl: Maybe[types.DocumentAcl] = OMIT,
        dedupe: Maybe[bool] = OMIT,
        on_active: Maybe[Literal["return", "queue", "error"]] = OMIT,
        confirm_deletions: Maybe[bool] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeIngestion:
        """Ingest content, and wait until it can be found.

        :param content: The text.
        :param file: The id (fil_…) of an uploaded file.
        :param pull: Pull again from the source's configuration.
        :param title: Display title.
        :param metadata: Free key-value map.
        :param dedupe: Reuse a document with the same bytes and the same readers. Push only.
        :param on_active: What to do while another ingestion of the source is active: return that one (default), queue, or 409.
        :param confirm_deletions: With `pull`: delete what the listing no longer contains, even if it is more than half of the source.
        """
        response: types.KnowledgeIngestion = self._connection.call("POST", path("/api/v1/knowledge_sources/{}/ingest", source), body=given(content=content, file=file, pull=pull, title=title, metadata=metadata, acl=acl, dedupe=dedupe, on_active=on_active, confirm_deletions=confirm_deletions), keyed=True, options=options)
        return ingestion_end(self._connection, response, options)

    def ingest_batch(
        self,
        source: str,
        *,
        items: List[types.IngestBatchIntoKnowledgeSourceRequestItems],
        acl: Maybe[types.DocumentAcl] = OMIT,
        on_active: Maybe[Literal["return", "queue", "error"]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeIngestion:
        """Ingest up to 100 contents in one request.

        :param items: The items, in order.
        :param on_active: What to do while another ingestion of the source is active: return that one (default), queue, or 409.
        """
        response: types.KnowledgeIngestion = self._connection.call("POST", path("/api/v1/knowledge_sources/{}/ingest/batch", source), body=given(items=items, acl=acl, on_active=on_active), keyed=True, options=options)
        return response

    def list_ingestions(
        self,
        source: str,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.KnowledgeIngestion, types.KnowledgeIngestionPage]:
        """List the ingestions of a source.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return Pages(self._connection, path("/api/v1/knowledge_sources/{}/ingestions", source), given(page=page, page_size=page_size), options)

    def get_ingestion(
        self,
        ingestion: str,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeIngestion:
        """Get an ingestion."""
        response: types.KnowledgeIngestion = self._connection.call("GET", path("/api/v1/knowledge_ingestions/{}", ingestion), options=options)
        return response

    def stream_ingestion(
        self,
        ingestion: str,
        options: Optional[CallOptions] = None,
    ) -> EventStream[types.KnowledgeIngestion]:
        """Follow an ingestion."""
        return EventStream(self._connection, path("/api/v1/knowledge_ingestions/{}/stream", ingestion), None, options)

    def list_documents(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        q: Maybe[str] = OMIT,
        source: Maybe[List[str]] = OMIT,
        installation: Maybe[List[str]] = OMIT,
        agent: Maybe[List[str]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.KnowledgeDocument, types.KnowledgeDocumentPage]:
        """List documents.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param q: Beginning of the title, case-insensitive.
        :param source: Only documents of this source (`cso_…`).
        :param installation: Only what this installation (`cin_…`) filled.
        :param agent: Only what this agent (`agt_…`) owns.
        """
        return Pages(self._connection, "/api/v1/knowledge_documents", given(page=page, page_size=page_size, q=q, source=source, installation=installation, agent=agent), options)

    def get_document(self, document: str, options: Optional[CallOptions] = None) -> types.KnowledgeDocument:
        """Get a document."""
        response: types.KnowledgeDocument = self._connection.call("GET", path("/api/v1/knowledge_documents/{}", document), options=options)
        return response

    def update_document(
        self,
        document: str,
        *,
        content: Maybe[types.UpdateKnowledgeDocumentRequestContent] = OMIT,
        file: Maybe[str] = OMIT,
        title: Maybe[str] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        acl: Maybe[Optional[types.DocumentAcl]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeIngestion:
        """Change a document.

        :param content: The text.
        :param file: The file (`fil_…`).
        :param title: Display title.
        :param metadata: Free key-value map.
        :param acl: The readers of the new content. null: every reader of the source. Omitted: those of the old one.
        """
        response: types.KnowledgeIngestion = self._connection.call("PATCH", path("/api/v1/knowledge_documents/{}", document), body=given(content=content, file=file, title=title, metadata=metadata, acl=acl), options=options)
        return response

    def delete_document(self, document: str, options: Optional[CallOptions] = None) -> None:
        """Delete a document."""
        self._connection.call("DELETE", path("/api/v1/knowledge_documents/{}", document), options=options)

    def read_document(
        self,
        document: str,
        *,
        offset: Maybe[int] = OMIT,
        limit: Maybe[int] = OMIT,
        unit: Maybe[Literal["lines", "bytes"]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeDocumentContent:
        """Read a document's text, or a slice of it.

        :param offset: The number of units to skip.
        :param limit: The number of units to return.
        :param unit: What `offset` and `limit` count.
        """
        response: types.KnowledgeDocumentContent = self._connection.call("GET", path("/api/v1/knowledge_documents/{}/content", document), query=given(offset=offset, limit=limit, unit=unit), options=options)
        return response

    def list_chunks(
        self,
        document: str,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.KnowledgeDocumentChunk, types.KnowledgeDocumentChunkPage]:
        """List the chunks of a document, in the order of the text.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return Pages(self._connection, path("/api/v1/knowledge_documents/{}/chunks", document), given(page=page, page_size=page_size), options)

    def get_inbound_url(
        self,
        source: str,
        options: Optional[CallOptions] = None,
    ) -> types.GetInboundUrlResponse:
        """Get the secret URL at which a webhook/inbound source accepts documents."""
        response: types.GetInboundUrlResponse = self._connection.call("GET", path("/api/v1/knowledge_sources/{}/inbound_url", source), options=options)
        return response

    def rotate_inbound_url(
        self,
        source: str,
        options: Optional[CallOptions] = None,
    ) -> types.RotateInboundUrlResponse:
        """Replace the inbound URL."""
        response: types.RotateInboundUrlResponse = self._connection.call("POST", path("/api/v1/knowledge_sources/{}/inbound_url", source), options=options)
        return response

    def set_inbound_secret(
        self,
        source: str,
        *,
        secret: Maybe[str] = OMIT,
        overlap_seconds: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.SetInboundSecretResponse:
        """Require signatures at the inbound URL, or replace their secret.

        :param secret: whsec_…, the secret that the sender provides. Default: a new one, to give to the sender.
        :param overlap_seconds: How long signatures with the previous secret are also accepted, in seconds. Default 86400, a day.
        """
        response: types.SetInboundSecretResponse = self._connection.call("POST", path("/api/v1/knowledge_sources/{}/inbound_url/signing_secret", source), body=given(secret=secret, overlap_seconds=overlap_seconds), options=options)
        return response

    def delete_inbound_secret(self, source: str, options: Optional[CallOptions] = None) -> None:
        """Accept unsigned posts at the inbound URL again."""
        self._connection.call("DELETE", path("/api/v1/knowledge_sources/{}/inbound_url/signing_secret", source), options=options)

    def start_sync(
        self,
        source: str,
        *,
        mode: Literal["full", "changes"],
        expires_in_seconds: Maybe[int] = OMIT,
        take_over: Maybe[bool] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeSync:
        """Start a sync of a source, or resume the one that expired.

        :param mode: `full`: everything is sent, and completing the sync deletes what was not. `changes`: only what changed since the last cursor.
        :param expires_in_seconds: How long after its last batch another connector must wait to resume or replace it. Default 600.
        :param take_over: Resume or replace a sync that has not expired. Its connector gets 409 from then on.
        """
        response: types.KnowledgeSync = self._connection.call("POST", path("/api/v1/knowledge_sources/{}/syncs", source), body=given(mode=mode, expires_in_seconds=expires_in_seconds, take_over=take_over), keyed=True, options=options)
        return response

    def list_syncs(
        self,
        source: str,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.KnowledgeSync, types.KnowledgeSyncPage]:
        """List the syncs of a source.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return Pages(self._connection, path("/api/v1/knowledge_sources/{}/syncs", source), given(page=page, page_size=page_size), options)

    def get_sync(self, sync: str, options: Optional[CallOptions] = None) -> types.KnowledgeSync:
        """Get a sync."""
        response: types.KnowledgeSync = self._connection.call("GET", path("/api/v1/knowledge_syncs/{}", sync), options=options)
        return response

    def send_sync_batch(
        self,
        sync: str,
        number: str,
        *,
        fence: int,
        upserts: Maybe[List[types.PutKnowledgeSyncBatchRequestUpserts]] = OMIT,
        deletes: Maybe[List[types.PutKnowledgeSyncBatchRequestDeletes]] = OMIT,
        cursor: Maybe[Optional[str]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeSync:
        """Send a batch of a sync.

        :param fence: The fence that the sync was started or resumed with.
        :param upserts: New and changed documents.
        :param deletes: Deleted documents.
        :param cursor: Where the connector continues after this batch. It is stored with the batch, and means nothing to the server.
        """
        response: types.KnowledgeSync = self._connection.call("PUT", path("/api/v1/knowledge_syncs/{}/batches/{}", sync, number), body=given(fence=fence, upserts=upserts, deletes=deletes, cursor=cursor), options=options)
        return response

    def complete_sync(
        self,
        sync: str,
        *,
        batches: int,
        documents: int,
        fence: Maybe[int] = OMIT,
        confirm_deletions: Maybe[bool] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeSync:
        """Complete a sync.

        :param batches: The number of batches that the connector sent.
        :param documents: The number of upserts in them.
        :param fence: The fence that the sync was started or resumed with. 409 if it is an old one, or if it is omitted after another connector has resumed the sync.
        :param confirm_deletions: Delete what was not seen even if it is more than half of the source.
        """
        response: types.KnowledgeSync = self._connection.call("POST", path("/api/v1/knowledge_syncs/{}/complete", sync), body=given(fence=fence, batches=batches, documents=documents, confirm_deletions=confirm_deletions), keyed=True, options=options)
        return response

    def abort_sync(
        self,
        sync: str,
        *,
        fence: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeSync:
        """Abort a sync.

        :param fence: The fence that the sync was started or resumed with. 409 if it is an old one, or if it is omitted after another connector has resumed the sync.
        """
        response: types.KnowledgeSync = self._connection.call("POST", path("/api/v1/knowledge_syncs/{}/abort", sync), body=given(fence=fence), keyed=True, options=options)
        return response

    def update_document_acl(
        self,
        document: str,
        *,
        grants: Maybe[List[types.ReadGrant]] = OMIT,
        add: Maybe[List[types.ReadGrant]] = OMIT,
        remove: Maybe[List[types.ReadGrantRemoval]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeDocument:
        """Change who sees a document.

        :param grants: Who may do what: the whole list.
        :param add: Grants to add, or to merge with those of the same principal.
        :param remove: Principals whose grants are removed.
        """
        response: types.KnowledgeDocument = self._connection.call("PATCH", path("/api/v1/knowledge_documents/{}/acl", document), body=given(grants=grants, add=add, remove=remove), options=options)
        return response

    def delete_document_acl(self, document: str, options: Optional[CallOptions] = None) -> None:
        """Let every reader of its source see a document."""
        self._connection.call("DELETE", path("/api/v1/knowledge_documents/{}/acl", document), options=options)

    def get_embedding(
        self,
        source: str,
        *,
        embedder: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeEmbedding:
        """Get the embedder of a source and its progress.

        :param embedder: Estimates what the vectors of this model or alias would use. Changes nothing.
        """
        response: types.KnowledgeEmbedding = self._connection.call("GET", path("/api/v1/knowledge_sources/{}/embedding", source), query=given(embedder=embedder), options=options)
        return response

    def list_versions(
        self,
        document: str,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.KnowledgeDocumentVersion, types.KnowledgeDocumentVersionPage]:
        """List the versions of a document.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return Pages(self._connection, path("/api/v1/knowledge_documents/{}/versions", document), given(page=page, page_size=page_size), options)

    def get_version(
        self,
        document: str,
        version: str,
        *,
        offset: Maybe[int] = OMIT,
        limit: Maybe[int] = OMIT,
        unit: Maybe[Literal["lines", "bytes"]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeDocumentVersionContent:
        """Read a version of a document.

        :param offset: The number of units to skip.
        :param limit: The number of units to return.
        :param unit: What `offset` and `limit` count.
        """
        response: types.KnowledgeDocumentVersionContent = self._connection.call("GET", path("/api/v1/knowledge_documents/{}/versions/{}", document, version), query=given(offset=offset, limit=limit, unit=unit), options=options)
        return response

    def compare_versions(
        self,
        document: str,
        version: str,
        *,
        base: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeDocumentComparison:
        """Compare a version of a document with another one.

        :param base: The version to compare with. By default, the one before.
        """
        response: types.KnowledgeDocumentComparison = self._connection.call("GET", path("/api/v1/knowledge_documents/{}/versions/{}/comparison", document, version), query=given(base=base), options=options)
        return response

    def restore_version(
        self,
        document: str,
        version: str,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeIngestion:
        """Make a version of a document the newest one."""
        response: types.KnowledgeIngestion = self._connection.call("POST", path("/api/v1/knowledge_documents/{}/versions/{}/restore", document, version), keyed=True, options=options)
        return response

    def list_deleted_documents(
        self,
        source: str,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.KnowledgeDocumentVersion, types.KnowledgeDocumentVersionPage]:
        """List the deleted documents of a source.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return Pages(self._connection, path("/api/v1/knowledge_sources/{}/deleted_documents", source), given(page=page, page_size=page_size), options)

    def plan_restore(
        self,
        source: str,
        *,
        at: str,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeRestorePlan:
        """See what restoring a source to a time would change.

        :param at: The time, as in `2026-03-01T12:00:00Z`.
        """
        response: types.KnowledgeRestorePlan = self._connection.call("GET", path("/api/v1/knowledge_sources/{}/restore", source), query=given(at=at), options=options)
        return response

    def restore_source(
        self,
        source: str,
        *,
        at: str,
        confirm_deletions: Maybe[bool] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeIngestion:
        """Bring a source back to a time.

        :param at: The time, as in `2026-03-01T12:00:00Z`.
        :param confirm_deletions: Delete documents even if they are more than half of the source.
        """
        response: types.KnowledgeIngestion = self._connection.call("POST", path("/api/v1/knowledge_sources/{}/restore", source), body=given(at=at, confirm_deletions=confirm_deletions), keyed=True, options=options)
        return response
