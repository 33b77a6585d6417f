"""Programs that copy the documents of another system into a source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import AsyncIterator, Callable, Dict, List, Literal, Optional, cast

from .. import types
from .._shared import OMIT, Maybe
from ..connectors import ConnectorBatch, Deletion, Listing, Upsert, parts_of
from ..errors import QuarryError
from .generated.knowledge import AsyncKnowledgeOperations
from .runtime import CallOptions, Work, pause
from .waiting import poll

AsyncRead = Callable[[Optional[str]], AsyncIterator[ConnectorBatch]]


@dataclass(frozen=True)
class AsyncConnector:
    """A program that copies the documents of another system. Each function continues after the batch with the cursor."""

    full: AsyncRead
    """Everything there is, from the beginning if the cursor is None. What it does not yield is deleted."""
    changes: Optional[AsyncRead] = None
    """What has changed since the cursor; None if the source was never filled."""


class AsyncConnectorRuns:
    """Runs a connector of a source."""

    def __init__(self, knowledge: AsyncKnowledgeOperations, source: str, connector: AsyncConnector) -> None:
        self._knowledge = knowledge
        self._source = source
        self._connector = connector

    async def run(
        self,
        mode: Literal["full", "changes"],
        *,
        take_over: Maybe[bool] = OMIT,
        confirm_deletions: Maybe[bool] = OMIT,
        expires_in_seconds: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.KnowledgeSync:
        """Runs the connector once, and returns when everything is indexed.

        If it raises, a full sync stays, so that the next run resumes it when it has expired (with `take_over`,
        immediately); one of changes loses nothing.

        :param take_over: Continue or replace a sync whose connector died, without waiting until it expires. Only one may run then.
        :param confirm_deletions: Let a full sync delete more than half of the source.
        :param expires_in_seconds: How long after its last batch others may resume the sync. Default 600.
        """
        read = self._connector.full if mode == "full" else self._connector.changes
        if read is None:
            raise QuarryError("invalid_parameters", "This connector finds no changes.")
        sync = await self._knowledge.start_sync(
            self._source, mode=mode, take_over=take_over, expires_in_seconds=expires_in_seconds, options=options
        )
        try:
            sync = await self._send_all(sync, read(sync["cursor"]), options)
        except Exception:
            if mode == "changes":
                await self._abort(sync, options)
            raise
        await self._knowledge.complete_sync(
            sync["id"],
            fence=sync["fence"],
            batches=sync["next_batch"] - 1,
            documents=sync["documents"],
            confirm_deletions=confirm_deletions,
            options=options,
        )

        async def look() -> types.KnowledgeSync:
            return await self._knowledge.get_sync(sync["id"], options)

        return await poll(look, _is_over, None, options)

    async def _send_all(
        self, sync: types.KnowledgeSync, batches: AsyncIterator[ConnectorBatch], options: Optional[CallOptions]
    ) -> types.KnowledgeSync:
        try:
            async for batch in batches:
                parts = parts_of(batch)
                for at, (upserts, deletes) in enumerate(parts):
                    cursor: Maybe[Optional[str]] = batch["cursor"] if at == len(parts) - 1 else OMIT
                    sync = await self._send(sync, upserts, deletes, cursor, options)
            return sync
        finally:
            # A connector that is stopped closes what it has open.
            close = getattr(batches, "aclose", None)
            if close is not None:
                await close()

    async def _send(
        self,
        sync: types.KnowledgeSync,
        upserts: List[Upsert],
        deletes: List[Deletion],
        cursor: Maybe[Optional[str]],
        options: Optional[CallOptions],
    ) -> types.KnowledgeSync:
        """Sends a batch, and waits while the server has enough to index."""
        while True:
            try:
                return await self._knowledge.send_sync_batch(
                    sync["id"],
                    str(sync["next_batch"]),
                    fence=sync["fence"],
                    upserts=upserts or OMIT,
                    deletes=deletes or OMIT,
                    cursor=cursor,
                    options=options,
                )
            except QuarryError as error:
                if error.status != 429:
                    raise
                await pause(max(error.retry_after or 0.0, 1.0), options)

    async def _abort(self, sync: types.KnowledgeSync, options: Optional[CallOptions]) -> None:
        once = cast(CallOptions, {**(options or {}), "retries": 0})
        try:
            await self._knowledge.abort_sync(sync["id"], fence=sync["fence"], options=once)
        except QuarryError:
            # It expires by itself.
            pass


def _is_over(sync: types.KnowledgeSync) -> bool:
    return sync["status"] != "completing"


class _Stopped(Exception):
    pass


async def check_connector(
    knowledge: AsyncKnowledgeOperations, new_source: Work[str], subject: AsyncConnector
) -> List[str]:
    """Checks that a connector keeps its promises. Returns the problems."""
    listing = Listing()

    async def watched(cursor: Optional[str]) -> AsyncIterator[ConnectorBatch]:
        async for batch in subject.full(cursor):
            listing.add(batch)
            yield batch

    problems = listing.problems
    source = await new_source()
    await AsyncConnectorRuns(knowledge, source, AsyncConnector(watched)).run("full")
    wanted = await _documents_of(knowledge, source)
    problems.extend(f'"{name}" could not be indexed.' for name in listing.ids if name not in wanted)
    again = (await AsyncConnectorRuns(knowledge, source, subject).run("full"))["stats"]
    if again["written"] > 0:
        problems.append("A second full sync writes documents that have not changed.")
    if again["deleted"] > 0:
        problems.append("A second full sync deletes documents that still exist.")
    for after in range(min(listing.batches, 5)):
        problems.extend(await _check_interrupted(knowledge, await new_source(), subject, after, wanted))
    if subject.changes is not None:
        stats = (await AsyncConnectorRuns(knowledge, source, subject).run("changes"))["stats"]
        if stats["written"] + stats["deleted"] > 0:
            problems.append("It reports changes where there are none.")
    return problems


async def _check_interrupted(
    knowledge: AsyncKnowledgeOperations, source: str, subject: AsyncConnector, after: int, wanted: Dict[str, str]
) -> List[str]:
    """Stops the connector after some batches, and lets another run continue."""

    async def stopped(cursor: Optional[str]) -> AsyncIterator[ConnectorBatch]:
        sent = 0
        async for batch in subject.full(cursor):
            if sent == after:
                raise _Stopped
            sent += 1
            yield batch

    try:
        await AsyncConnectorRuns(knowledge, source, AsyncConnector(stopped)).run("full")
    except _Stopped:
        pass
    await AsyncConnectorRuns(knowledge, source, subject).run("full", take_over=True)
    found = await _documents_of(knowledge, source)
    missing = sum(1 for name, text in wanted.items() if found.get(name) != text)
    extra = sum(1 for name in found if name not in wanted)
    if missing + extra == 0:
        return []
    return [f"Stopped after {after} batches and resumed, {missing} documents differ and {extra} are too many."]


async def _documents_of(knowledge: AsyncKnowledgeOperations, source: str) -> Dict[str, str]:
    """The hashes of the texts of a source by external id."""
    found: Dict[str, str] = {}
    async for document in knowledge.list_documents(source=[source], page_size=100):
        name = document.get("external_id")
        if name is not None:
            found[name] = document["content_hash"]
    return found
