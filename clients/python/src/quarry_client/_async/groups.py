"""The groups that do more than their operations."""

from __future__ import annotations

from typing import Mapping, Optional, Union

from .. import types, webhooks
from .generated.extractions import AsyncExtractionsOperations
from .generated.knowledge import AsyncKnowledgeOperations
from .generated.runs import AsyncRunsOperations
from .generated.webhooks import AsyncWebhooksOperations
from .runtime import CallOptions
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


class AsyncWebhooks(AsyncWebhooksOperations):
    """The URLs that receive events, and their deliveries."""

    def verify(self, body: Union[bytes, str], headers: Mapping[str, str], secret: str) -> webhooks.WebhookEvent:
        """The event of a message, if its signature is valid: see `verify_webhook`."""
        return webhooks.verify_webhook(body, headers, secret)
