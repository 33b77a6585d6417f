# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import AsyncConnection, AsyncPages
from ..runtime import CallOptions
from ..waiting import run_end


class AsyncAutomationsOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self,
        *,
        name: str,
        type: Literal["trigger", "scheduled", "invoked"],
        lookup_key: Maybe[Optional[str]] = OMIT,
        description: Maybe[Optional[str]] = OMIT,
        trigger: Maybe[Optional[str]] = OMIT,
        filter: Maybe[Optional[str]] = OMIT,
        schedule: Maybe[Optional[str]] = OMIT,
        timezone: Maybe[str] = OMIT,
        workflow: Maybe[Optional[Dict[str, Any]]] = OMIT,
        input_schema: Maybe[Optional[Dict[str, Any]]] = OMIT,
        invoke_auth: Maybe[Literal["any", "secret_key", "user"]] = OMIT,
        run_as_user: Maybe[Optional[str]] = OMIT,
        run_as_agent: Maybe[Optional[str]] = OMIT,
        max_concurrent_runs: Maybe[Optional[int]] = OMIT,
        max_pending_runs: Maybe[Optional[int]] = OMIT,
        concurrency: Maybe[Optional[types.CreateAutomationRequestConcurrency]] = OMIT,
        rate: Maybe[Optional[types.CreateAutomationRequestRate]] = OMIT,
        timeout_seconds: Maybe[Optional[int]] = OMIT,
        retention: Maybe[Optional[types.CreateAutomationRequestRetention]] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        org: Maybe[str] = OMIT,
        team: Maybe[str] = OMIT,
        user: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Automation:
        """Create an automation.

        :param name: The name.
        :param type: The type.
        :param lookup_key: A name for programs, unique in the app or sandbox.
        :param description: A text for people.
        :param trigger: The name of the event that starts a run.
        :param filter: A JSONata expression over the payload. The event starts a run only if it is true.
        :param schedule: A cron expression with five fields.
        :param timezone: The time zone of the schedule, such as `Europe/Berlin`. Default UTC.
        :param workflow: A graph {kind: "WorkflowGraph", version: 1, start_node, nodes}, a program {kind: "WorkflowProgram", version: 1, name}, or null.
        :param input_schema: JSON Schema that the payload of an invocation must match, or null.
        :param invoke_auth: Which callers may invoke it: end users, secret keys, or any.
        :param run_as_user: The user (`usr_…`) as whom runs act.
        :param run_as_agent: The agent (`agt_…`) as which runs act.
        :param max_concurrent_runs: How many runs may be active at the same time.
        :param max_pending_runs: How many runs may wait for their turn. Beyond it, invocations are 429.
        :param concurrency: Limits active runs with the same value in their payload.
        :param rate: How many runs may start in a time. The others wait for their turn.
        :param timeout_seconds: How many seconds a run may take.
        :param retention: How long runs are kept after their end. Without it, as the app says.
        :param metadata: Stored as given; replaces the whole map.
        :param org: The organisation (`org_…`).
        :param team: The team (`tea_…`).
        :param user: The user (`usr_…`).
        """
        response: types.Automation = await self._connection.call("POST", "/api/v1/automations", body=given(name=name, lookup_key=lookup_key, description=description, trigger=trigger, filter=filter, schedule=schedule, timezone=timezone, workflow=workflow, input_schema=input_schema, invoke_auth=invoke_auth, run_as_user=run_as_user, run_as_agent=run_as_agent, max_concurrent_runs=max_concurrent_runs, max_pending_runs=max_pending_runs, concurrency=concurrency, rate=rate, timeout_seconds=timeout_seconds, retention=retention, metadata=metadata, type=type, org=org, team=team, user=user), keyed=True, options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        type: Maybe[Literal["trigger", "scheduled", "invoked"]] = OMIT,
        status: Maybe[Literal["draft", "running", "paused"]] = OMIT,
        search: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.Automation, types.AutomationPage]:
        """List automations.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param type: Only those of this type.
        :param status: Only those with this status.
        :param search: Part of the name or the lookup key, case-insensitive.
        """
        return AsyncPages(self._connection, "/api/v1/automations", given(page=page, page_size=page_size, type=type, status=status, search=search), options)

    async def get(self, automation: str, options: Optional[CallOptions] = None) -> types.Automation:
        """Get an automation."""
        response: types.Automation = await self._connection.call("GET", path("/api/v1/automations/{}", automation), options=options)
        return response

    async def update(
        self,
        automation: str,
        *,
        name: Maybe[str] = OMIT,
        lookup_key: Maybe[Optional[str]] = OMIT,
        description: Maybe[Optional[str]] = OMIT,
        trigger: Maybe[Optional[str]] = OMIT,
        filter: Maybe[Optional[str]] = OMIT,
        schedule: Maybe[Optional[str]] = OMIT,
        timezone: Maybe[str] = OMIT,
        workflow: Maybe[Optional[Dict[str, Any]]] = OMIT,
        input_schema: Maybe[Optional[Dict[str, Any]]] = OMIT,
        invoke_auth: Maybe[Literal["any", "secret_key", "user"]] = OMIT,
        run_as_user: Maybe[Optional[str]] = OMIT,
        run_as_agent: Maybe[Optional[str]] = OMIT,
        max_concurrent_runs: Maybe[Optional[int]] = OMIT,
        max_pending_runs: Maybe[Optional[int]] = OMIT,
        concurrency: Maybe[Optional[types.UpdateAutomationRequestConcurrency]] = OMIT,
        rate: Maybe[Optional[types.UpdateAutomationRequestRate]] = OMIT,
        timeout_seconds: Maybe[Optional[int]] = OMIT,
        retention: Maybe[Optional[types.UpdateAutomationRequestRetention]] = OMIT,
        metadata: Maybe[Dict[str, Any]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Automation:
        """Update an automation.

        :param name: The name.
        :param lookup_key: A name for programs, unique in the app or sandbox.
        :param description: A text for people.
        :param trigger: The name of the event that starts a run.
        :param filter: A JSONata expression over the payload. The event starts a run only if it is true.
        :param schedule: A cron expression with five fields.
        :param timezone: The time zone of the schedule, such as `Europe/Berlin`. Default UTC.
        :param workflow: A graph {kind: "WorkflowGraph", version: 1, start_node, nodes}, a program {kind: "WorkflowProgram", version: 1, name}, or null.
        :param input_schema: JSON Schema that the payload of an invocation must match, or null.
        :param invoke_auth: Which callers may invoke it: end users, secret keys, or any.
        :param run_as_user: The user (`usr_…`) as whom runs act.
        :param run_as_agent: The agent (`agt_…`) as which runs act.
        :param max_concurrent_runs: How many runs may be active at the same time.
        :param max_pending_runs: How many runs may wait for their turn. Beyond it, invocations are 429.
        :param concurrency: Limits active runs with the same value in their payload.
        :param rate: How many runs may start in a time. The others wait for their turn.
        :param timeout_seconds: How many seconds a run may take.
        :param retention: How long runs are kept after their end. Without it, as the app says.
        :param metadata: Stored as given; replaces the whole map.
        """
        response: types.Automation = await self._connection.call("PATCH", path("/api/v1/automations/{}", automation), body=given(name=name, lookup_key=lookup_key, description=description, trigger=trigger, filter=filter, schedule=schedule, timezone=timezone, workflow=workflow, input_schema=input_schema, invoke_auth=invoke_auth, run_as_user=run_as_user, run_as_agent=run_as_agent, max_concurrent_runs=max_concurrent_runs, max_pending_runs=max_pending_runs, concurrency=concurrency, rate=rate, timeout_seconds=timeout_seconds, retention=retention, metadata=metadata), options=options)
        return response

    async def delete(self, automation: str, options: Optional[CallOptions] = None) -> None:
        """Delete an automation."""
        await self._connection.call("DELETE", path("/api/v1/automations/{}", automation), options=options)

    async def check(self, *, text: str, options: Optional[CallOptions] = None) -> types.CheckAutomationResponse:
        """Check the text of an automation without saving it.

        :param text: In YAML or JSON: the body of POST /automations, or a bare graph.
        """
        response: types.CheckAutomationResponse = await self._connection.call("POST", "/api/v1/automations/check", body=given(text=text), keyed=True, options=options)
        return response

    async def activate(self, automation: str, options: Optional[CallOptions] = None) -> types.Automation:
        """Let an automation start runs."""
        response: types.Automation = await self._connection.call("POST", path("/api/v1/automations/{}/activate", automation), keyed=True, options=options)
        return response

    async def pause(self, automation: str, options: Optional[CallOptions] = None) -> types.Automation:
        """Stop new runs; active runs continue."""
        response: types.Automation = await self._connection.call("POST", path("/api/v1/automations/{}/pause", automation), keyed=True, options=options)
        return response

    async def invoke(
        self,
        automation: str,
        *,
        payload: Maybe[Dict[str, Any]] = OMIT,
        participants: Maybe[Dict[str, str]] = OMIT,
        idempotency_key: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.AutomationRun:
        """Start a run of an invoked automation.

        :param payload: Available to the graph as `$`; validated against `input_schema`.
        :param participants: Values that expressions of the run can read as `$participants`.
        :param idempotency_key: The same key returns the first run again, for at least a day.
        """
        response: types.AutomationRun = await self._connection.call("POST", path("/api/v1/automations/{}/invoke", automation), body=given(payload=payload, participants=participants, idempotency_key=idempotency_key), keyed=True, options=options)
        return response

    async def run(
        self,
        automation: str,
        *,
        payload: Maybe[Dict[str, Any]] = OMIT,
        participants: Maybe[Dict[str, str]] = OMIT,
        idempotency_key: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.AutomationRun:
        """Invoke an automation, and wait until its run has ended.

        :param payload: Available to the graph as `$`; validated against `input_schema`.
        :param participants: Values that expressions of the run can read as `$participants`.
        :param idempotency_key: The same key returns the first run again, for at least a day.
        """
        response: types.AutomationRun = await self._connection.call("POST", path("/api/v1/automations/{}/invoke", automation), body=given(payload=payload, participants=participants, idempotency_key=idempotency_key), keyed=True, options=options)
        return await run_end(self._connection, response, options)

    async def claim(
        self,
        automation: str,
        *,
        lease_seconds: int,
        options: Optional[CallOptions] = None,
    ) -> types.ClaimedAutomationRun:
        """Claim the oldest pending run of an automation without a workflow.

        :param lease_seconds: For how many seconds the claim is valid unless it is renewed.
        """
        response: types.ClaimedAutomationRun = await self._connection.call("POST", path("/api/v1/automations/{}/claim", automation), body=given(lease_seconds=lease_seconds), keyed=True, options=options)
        return response

    def list_invocable(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.InvocableAutomation, types.InvocableAutomationPage]:
        """List the automations that the caller may invoke now.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, "/api/v1/invocable_automations", given(page=page, page_size=page_size), options)

    def list_runs(
        self,
        automation: str,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        status: Maybe[Literal["pending", "running", "completed", "failed", "cancelled"]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.AutomationRun, types.ListAutomationRunsPage]:
        """List the runs of an automation, newest first.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param status: Only those with this status.
        """
        return AsyncPages(self._connection, path("/api/v1/automations/{}/runs", automation), given(page=page, page_size=page_size, status=status), options)

    def list_versions(
        self,
        automation: str,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.WorkflowVersion, types.WorkflowVersionPage]:
        """List the versions of an automation’s graph, newest first.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, path("/api/v1/automations/{}/versions", automation), given(page=page, page_size=page_size), options)

    async def get_version(
        self,
        automation: str,
        version: str,
        options: Optional[CallOptions] = None,
    ) -> types.WorkflowVersion:
        """Get one version of an automation’s graph."""
        response: types.WorkflowVersion = await self._connection.call("GET", path("/api/v1/automations/{}/versions/{}", automation, version), options=options)
        return response

    async def list_secrets(self, options: Optional[CallOptions] = None) -> types.ListAppSecretsResponse:
        """List the names of the app’s secrets."""
        response: types.ListAppSecretsResponse = await self._connection.call("GET", "/api/v1/secrets", options=options)
        return response

    async def put_secret(self, name: str, *, value: str, options: Optional[CallOptions] = None) -> types.AppSecret:
        """Set a secret that graphs read as `$secrets.NAME`.

        :param value: The value.
        """
        response: types.AppSecret = await self._connection.call("PUT", path("/api/v1/secrets/{}", name), body=given(value=value), options=options)
        return response

    async def delete_secret(self, name: str, options: Optional[CallOptions] = None) -> None:
        """Delete a secret."""
        await self._connection.call("DELETE", path("/api/v1/secrets/{}", name), options=options)

    async def claim_work(
        self,
        *,
        automations: List[str],
        code_version: str,
        lease_seconds: int,
        wait_seconds: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.ClaimedWork:
        """Claim a run that a program executes.

        :param automations: Ids or lookup keys of automations whose workflow is a program.
        :param code_version: The version of your code. A run that a version did not fit is not offered to it again.
        :param lease_seconds: The run may be claimed again this long after the last request with the claim.
        :param wait_seconds: How long to wait for a run. By default, the response is sent immediately.
        """
        response: types.ClaimedWork = await self._connection.call("POST", "/api/v1/automation_work/claim", body=given(automations=automations, code_version=code_version, lease_seconds=lease_seconds, wait_seconds=wait_seconds), keyed=True, options=options)
        return response
