# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import List, Literal, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import AsyncConnection, AsyncPages
from ..runtime import CallOptions


class AsyncWebhooksOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self,
        *,
        url: str,
        events: Maybe[List[str]] = OMIT,
        automations: Maybe[List[str]] = OMIT,
        lookup_key: Maybe[Optional[str]] = OMIT,
        description: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Webhook:
        """Create a webhook.

        :param url: The URL.
        :param events: Names of events, or `*` for all.
        :param automations: Ids or lookup keys of automations whose workflow is a program. Instead of events, the URL receives a message when a run of them has work. Not together with `events`.
        :param lookup_key: A name for programs, unique in the app or sandbox.
        :param description: A text for people.
        """
        response: types.Webhook = await self._connection.call("POST", "/api/v1/webhooks", body=given(url=url, events=events, automations=automations, lookup_key=lookup_key, description=description), options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        lookup_key: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.Webhook, types.WebhookPage]:
        """List webhooks.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param lookup_key: Only the one with this lookup key.
        """
        return AsyncPages(self._connection, "/api/v1/webhooks", given(page=page, page_size=page_size, lookup_key=lookup_key), options)

    async def get(self, webhook: str, options: Optional[CallOptions] = None) -> types.Webhook:
        """Get a webhook."""
        response: types.Webhook = await self._connection.call("GET", path("/api/v1/webhooks/{}", webhook), options=options)
        return response

    async def update(
        self,
        webhook: str,
        *,
        url: Maybe[str] = OMIT,
        events: Maybe[List[str]] = OMIT,
        automations: Maybe[List[str]] = OMIT,
        lookup_key: Maybe[Optional[str]] = OMIT,
        description: Maybe[Optional[str]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Webhook:
        """Update a webhook.

        :param url: The URL.
        :param events: Names of events, or `*` for all.
        :param automations: Ids or lookup keys of automations whose workflow is a program. Instead of events, the URL receives a message when a run of them has work. Not together with `events`.
        :param lookup_key: A name for programs, unique in the app or sandbox.
        :param description: A text for people.
        """
        response: types.Webhook = await self._connection.call("PATCH", path("/api/v1/webhooks/{}", webhook), body=given(url=url, events=events, automations=automations, lookup_key=lookup_key, description=description), options=options)
        return response

    async def delete(self, webhook: str, options: Optional[CallOptions] = None) -> None:
        """Delete a webhook."""
        await self._connection.call("DELETE", path("/api/v1/webhooks/{}", webhook), options=options)

    async def pause(self, webhook: str, options: Optional[CallOptions] = None) -> types.Webhook:
        """Stop deliveries."""
        response: types.Webhook = await self._connection.call("POST", path("/api/v1/webhooks/{}/pause", webhook), keyed=True, options=options)
        return response

    async def resume(self, webhook: str, options: Optional[CallOptions] = None) -> types.Webhook:
        """Continue deliveries."""
        response: types.Webhook = await self._connection.call("POST", path("/api/v1/webhooks/{}/resume", webhook), keyed=True, options=options)
        return response

    async def rotate_secret(
        self,
        webhook: str,
        *,
        overlap_seconds: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Webhook:
        """Replace the secret.

        :param overlap_seconds: How long deliveries are also signed with the previous secret. Default 86400, a day.
        """
        response: types.Webhook = await self._connection.call("POST", path("/api/v1/webhooks/{}/rotate_secret", webhook), body=given(overlap_seconds=overlap_seconds), options=options)
        return response

    async def test(self, webhook: str, options: Optional[CallOptions] = None) -> types.WebhookDelivery:
        """Send a test event."""
        response: types.WebhookDelivery = await self._connection.call("POST", path("/api/v1/webhooks/{}/test", webhook), keyed=True, options=options)
        return response

    def list_deliveries(
        self,
        webhook: str,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        state: Maybe[Literal["pending", "delivered", "failed"]] = OMIT,
        type: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.WebhookDelivery, types.WebhookDeliveryPage]:
        """List the deliveries of a webhook.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param state: Only those in this state.
        :param type: The name of the event.
        """
        return AsyncPages(self._connection, path("/api/v1/webhooks/{}/deliveries", webhook), given(page=page, page_size=page_size, state=state, type=type), options)

    async def redeliver(
        self,
        webhook: str,
        delivery: str,
        options: Optional[CallOptions] = None,
    ) -> types.WebhookDelivery:
        """Deliver an event again."""
        response: types.WebhookDelivery = await self._connection.call("POST", path("/api/v1/webhooks/{}/deliveries/{}/redeliver", webhook, delivery), keyed=True, options=options)
        return response
