"""The groups that do more than their operations."""

from __future__ import annotations

from typing import List, Mapping, Optional, Union

from .. import types, webhooks
from .connector import AsyncConnector, AsyncConnectorRuns, check_connector
from .generated.extractions import AsyncExtractionsOperations
from .generated.knowledge import AsyncKnowledgeOperations
from .generated.runs import AsyncRunsOperations
from .generated.webhooks import AsyncWebhooksOperations
from .runtime import CallOptions, Work
from .waiting import extraction_end, ingestion_end, run_end


class AsyncRuns(AsyncRunsOperations):
    """Runs of automations: reading, following and steering them."""

    async def wait_for(
        self, automation_run: str, *, seconds: Optional[float] = None, options: Optional[CallOptions] = None
    ) -> types.AutomationRun:
        """The run, when it has ended; after `seconds`, as it is then."""
        return await run_end(self._connection, await self.get(automation_run, options=options), options, seconds)


class AsyncExtractions(AsyncExtractionsOperations):
    """Text from documents, pages and sites."""

    async def wait_for(
        self, extraction: str, *, seconds: Optional[float] = None, options: Optional[CallOptions] = None
    ) -> types.Extraction:
        """The extraction, when it has ended; after `seconds`, as it is then."""
        return await extraction_end(self._connection, await self.get(extraction, options=options), options, seconds)


class AsyncKnowledge(AsyncKnowledgeOperations):
    """Sources, ingestion, documents and search."""

    async def wait_for(
        self, ingestion: str, *, seconds: Optional[float] = None, options: Optional[CallOptions] = None
    ) -> types.KnowledgeIngestion:
        """The ingestion, when it has ended; after `seconds`, as it is then."""
        found = await self.get_ingestion(ingestion, options=options)
        return await ingestion_end(self._connection, found, options, seconds)

    def connector(self, source: str, connector: AsyncConnector) -> AsyncConnectorRuns:
        """Runs a program that copies the documents of another system into a source."""
        return AsyncConnectorRuns(self, source, connector)

    async def check_connector(self, new_source: Work[str], connector: AsyncConnector) -> List[str]:
        """Checks that a connector keeps its promises, against this server. Returns the problems.

        It must list each document once, find the same twice, continue after every batch, and report no changes where
        there are none. What it reads must not change meanwhile.

        :param new_source: Creates an empty source of the type `knowledge/documents`, and returns its id.
        """
        return await check_connector(self, new_source, connector)


class AsyncWebhooks(AsyncWebhooksOperations):
    """The URLs that receive events, and their deliveries."""

    def verify(self, body: Union[bytes, str], headers: Mapping[str, str], secret: str) -> webhooks.WebhookEvent:
        """The event of a message, if its signature is valid: see `verify_webhook`."""
        return webhooks.verify_webhook(body, headers, secret)
