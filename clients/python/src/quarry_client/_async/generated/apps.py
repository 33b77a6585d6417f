# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import List, Literal, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import AsyncConnection, AsyncPages
from ..runtime import CallOptions


class AsyncAppsOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(self, *, name: str, options: Optional[CallOptions] = None) -> types.App:
        """Create an app.

        :param name: The name.
        """
        response: types.App = await self._connection.call("POST", "/protected/api/v1/developer/apps", body=given(name=name), keyed=True, options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.App, types.AppPage]:
        """List your apps.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, "/protected/api/v1/developer/apps", given(page=page, page_size=page_size), options)

    async def get(self, app: str, options: Optional[CallOptions] = None) -> types.App:
        """Get an app."""
        response: types.App = await self._connection.call("GET", path("/protected/api/v1/developer/apps/{}", app), options=options)
        return response

    async def update(
        self,
        app: str,
        *,
        name: Maybe[str] = OMIT,
        quotas: Maybe[types.UpdateAppRequestQuotas] = OMIT,
        run_retention: Maybe[Optional[types.UpdateAppRequestRunRetention]] = OMIT,
        assistants: Maybe[bool] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.App:
        """Rename an app or set its limits, how long runs are kept and whether assistants connect.

        :param name: The name.
        :param quotas: The app’s own limits, at most those set by the operator of the server; null removes one. They apply to production and to each sandbox separately.
        :param run_retention: How long runs of automations without `retention` are kept after their end.
        :param assistants: Whether assistants may connect to the MCP endpoint by OAuth, where the server runs with `QUARRY_MCP_OAUTH`. `false` also disconnects those that are.
        """
        response: types.App = await self._connection.call("PATCH", path("/protected/api/v1/developer/apps/{}", app), body=given(name=name, quotas=quotas, run_retention=run_retention, assistants=assistants), options=options)
        return response

    async def usage(self, options: Optional[CallOptions] = None) -> types.Usage:
        """Get the usage and quotas of the app."""
        response: types.Usage = await self._connection.call("GET", "/api/v1/usage", options=options)
        return response

    async def create_sandbox(self, *, name: str, options: Optional[CallOptions] = None) -> types.Sandbox:
        """Create a sandbox.

        :param name: The name.
        """
        response: types.Sandbox = await self._connection.call("POST", "/api/v1/sandboxes", body=given(name=name), keyed=True, options=options)
        return response

    def list_sandboxes(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.Sandbox, types.SandboxPage]:
        """List sandboxes.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, "/api/v1/sandboxes", given(page=page, page_size=page_size), options)

    async def get_sandbox(self, sandbox: str, options: Optional[CallOptions] = None) -> types.Sandbox:
        """Get a sandbox."""
        response: types.Sandbox = await self._connection.call("GET", path("/api/v1/sandboxes/{}", sandbox), options=options)
        return response

    async def update_sandbox(
        self,
        sandbox: str,
        *,
        name: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Sandbox:
        """Update a sandbox.

        :param name: The name.
        """
        response: types.Sandbox = await self._connection.call("PATCH", path("/api/v1/sandboxes/{}", sandbox), body=given(name=name), options=options)
        return response

    async def delete_sandbox(self, sandbox: str, options: Optional[CallOptions] = None) -> None:
        """Delete a sandbox."""
        await self._connection.call("DELETE", path("/api/v1/sandboxes/{}", sandbox), options=options)

    async def create_key(
        self,
        *,
        type: Literal["secret", "publishable"],
        name: Maybe[str] = OMIT,
        sandbox: Maybe[str] = OMIT,
        expires_in_days: Maybe[int] = OMIT,
        scopes: Maybe[List[Literal["read", "files", "extractions", "knowledge", "automations", "kv", "webhooks", "people", "app", "files:read", "extractions:read", "knowledge:read", "automations:read", "kv:read", "webhooks:read", "people:read", "app:read"]]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.ApiKey:
        """Create an API key.

        :param type: The type.
        :param name: The name.
        :param sandbox: sbx_…; the key then works only in that sandbox.
        :param expires_in_days: Default: it does not expire.
        :param scopes: For a secret key: what it may do. `read` allows reading everything, an area such as `kv` all operations of that area, `kv:read` reading in it. Default: everything.
        """
        response: types.ApiKey = await self._connection.call("POST", "/api/v1/keys", body=given(type=type, name=name, sandbox=sandbox, expires_in_days=expires_in_days, scopes=scopes), options=options)
        return response

    def list_keys(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.ApiKey, types.ApiKeyPage]:
        """List API keys, including revoked ones.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, "/api/v1/keys", given(page=page, page_size=page_size), options)

    async def get_key(self, key: str, options: Optional[CallOptions] = None) -> types.ApiKey:
        """Get an API key."""
        response: types.ApiKey = await self._connection.call("GET", path("/api/v1/keys/{}", key), options=options)
        return response

    async def delete_key(self, key: str, options: Optional[CallOptions] = None) -> None:
        """Delete an API key."""
        await self._connection.call("DELETE", path("/api/v1/keys/{}", key), options=options)
