# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, Union

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import Connection, EventStream, Pages
from ..runtime import CallOptions


class RunsOperations:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(
        self,
        *,
        status: Maybe[Literal["pending", "running", "waiting", "completed", "failed", "cancelled"]] = OMIT,
        automation: Maybe[str] = OMIT,
        retried_from: Maybe[str] = OMIT,
        since: Maybe[str] = OMIT,
        until: Maybe[str] = OMIT,
        search: Maybe[str] = OMIT,
        limit: Maybe[int] = OMIT,
        after_cursor: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.AutomationRunSummary, types.AutomationRunPage]:
        """List the runs of all automations, newest first.

        :param status: `waiting`: in progress, but only waiting for a time, a signal or a child run.
        :param automation: The id or lookup key of an automation.
        :param retried_from: Only runs that repeat or continue this run.
        :param since: A time in ISO 8601.
        :param until: A time in ISO 8601.
        :param search: The id of a run, or part of the name or lookup key of its automation.
        :param limit: Default 25, at most 100.
        :param after_cursor: The `after_cursor` of the previous page.
        """
        return Pages(self._connection, "/api/v1/automation_runs", given(status=status, automation=automation, retried_from=retried_from, since=since, until=until, search=search, limit=limit, after_cursor=after_cursor), options)

    def get(self, automation_run: str, options: Optional[CallOptions] = None) -> types.AutomationRun:
        """Get a run."""
        response: types.AutomationRun = self._connection.call("GET", path("/api/v1/automation_runs/{}", automation_run), options=options)
        return response

    def journal(
        self,
        automation_run: str,
        *,
        limit: Maybe[int] = OMIT,
        after_cursor: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.WorkflowJournalEntry, types.RunJournalPage]:
        """Read the journal of a run, oldest entry first.

        :param limit: Default 50, at most 100.
        :param after_cursor: The `after_cursor` of the previous page.
        """
        return Pages(self._connection, path("/api/v1/automation_runs/{}/journal", automation_run), given(limit=limit, after_cursor=after_cursor), options)

    def stream(
        self,
        automation_run: str,
        options: Optional[CallOptions] = None,
    ) -> EventStream[types.AutomationRun]:
        """Follow the status of an invoked run."""
        return EventStream(self._connection, path("/api/v1/automation_runs/{}/stream", automation_run), None, options)

    def stream_output(self, automation_run: str, options: Optional[CallOptions] = None) -> EventStream[Any]:
        """Follow the texts that the language model writes for a run."""
        return EventStream(self._connection, path("/api/v1/automation_runs/{}/output_stream", automation_run), None, options)

    def cancel(self, automation_run: str, options: Optional[CallOptions] = None) -> types.AutomationRun:
        """Cancel a run that has not ended."""
        response: types.AutomationRun = self._connection.call("POST", path("/api/v1/automation_runs/{}/cancel", automation_run), keyed=True, options=options)
        return response

    def retry(
        self,
        automation_run: str,
        *,
        from_: Maybe[Union[Literal["failure"], types.RetryAutomationRunRequestFrom]] = OMIT,
        outputs: Maybe[Dict[str, Any]] = OMIT,
        workflow_version: Maybe[int] = OMIT,
        payload: Maybe[Dict[str, Any]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.AutomationRun:
        """Start a new run from one that has ended, from its beginning or from a node.

        :param from_: Keeps what the run did before this node, or with `failure` everything that it finished. Without it, the new run starts from the beginning with the current workflow.
        :param outputs: Outputs, by node, that replace the kept ones. Only with `from`.
        :param workflow_version: The version of the workflow to continue with. By default the one of the old run. Only with `from`.
        :param payload: Another payload, for a new run from the beginning. Only for runs of type invoked, and not with `from`.
        """
        response: types.AutomationRun = self._connection.call("POST", path("/api/v1/automation_runs/{}/retry", automation_run), body=given(**{"from": from_, "outputs": outputs, "workflow_version": workflow_version, "payload": payload}), keyed=True, options=options)
        return response

    def signal(
        self,
        automation_run: str,
        *,
        name: str,
        payload: Maybe[Any] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.AutomationRun:
        """Send a signal to a run.

        :param name: The name.
        :param payload: The data that comes with it.
        """
        response: types.AutomationRun = self._connection.call("POST", path("/api/v1/automation_runs/{}/signal", automation_run), body=given(name=name, payload=payload), keyed=True, options=options)
        return response

    def report(
        self,
        automation_run: str,
        *,
        status: Literal["running", "completed", "failed"],
        result: Maybe[Any] = OMIT,
        error: Maybe[types.ReportAutomationRunRequestError] = OMIT,
        claim: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.AutomationRun:
        """Report on a claimed run; `running` renews the claim.

        :param status: The status.
        :param result: What the run returned.
        :param error: Why it failed.
        :param claim: The `claim` of the response to the claim. 409 `claim_lost` if the run was claimed again since.
        """
        response: types.AutomationRun = self._connection.call("POST", path("/api/v1/automation_runs/{}/status", automation_run), body=given(status=status, result=result, error=error, claim=claim), keyed=True, options=options)
        return response

    def append_entries(
        self,
        automation_run: str,
        *,
        claim: str,
        after_sequence: int,
        entries: List[types.AppendRunEntriesRequestEntries],
        release: Maybe[types.AppendRunEntriesRequestRelease] = OMIT,
        wait_seconds: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.AppendedWork:
        """Write what a program did in a run, and renew the claim.

        :param claim: The claim, `clm_…`. Another claim on the run makes it invalid.
        :param after_sequence: The `sequence` of the last response.
        :param entries: One request may end a step and start the next. An empty list only renews the claim.
        :param release: Ends the claim after these entries. The run is ready again when something has happened in it.
        :param wait_seconds: Without entries and `release`: waits this long for an entry of the server.
        """
        response: types.AppendedWork = self._connection.call("POST", path("/api/v1/automation_runs/{}/entries", automation_run), body=given(claim=claim, after_sequence=after_sequence, entries=entries, release=release, wait_seconds=wait_seconds), keyed=True, options=options)
        return response

    def read_claimed_journal(
        self,
        automation_run: str,
        *,
        claim: str,
        after_cursor: str,
        options: Optional[CallOptions] = None,
    ) -> types.WorkJournalPage:
        """Continue to read the journal of a claimed run.

        :param claim: The claim, `clm_…`. Another claim on the run makes it invalid.
        :param after_cursor: The `after_cursor` of the page before.
        """
        response: types.WorkJournalPage = self._connection.call("POST", path("/api/v1/automation_runs/{}/claimed_journal", automation_run), body=given(claim=claim, after_cursor=after_cursor), keyed=True, options=options)
        return response

    def read_claimed_run(
        self,
        *,
        code_version: Maybe[str] = OMIT,
        after_cursor: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.ClaimedJournal:
        """Read the journal of the run that a function was woken for.

        :param code_version: The version of your code, which its entries then name.
        :param after_cursor: The `after_cursor` of the page before. Without it: the beginning.
        """
        response: types.ClaimedJournal = self._connection.call("POST", "/api/v1/claimed_run/journal", body=given(code_version=code_version, after_cursor=after_cursor), options=options)
        return response

    def append_claimed_run(
        self,
        *,
        after_sequence: int,
        entries: List[types.AppendClaimedRunRequestEntries],
        release: Maybe[types.AppendClaimedRunRequestRelease] = OMIT,
        wait_seconds: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.AppendedWork:
        """Write what a function did in the run that it was woken for.

        :param after_sequence: The `sequence` of the last response.
        :param entries: One request may end a step and start the next. An empty list only renews the claim.
        :param release: Ends the claim after these entries. The run is ready again when something has happened in it.
        :param wait_seconds: Without entries and `release`: waits this long for an entry of the server.
        """
        response: types.AppendedWork = self._connection.call("POST", "/api/v1/claimed_run/entries", body=given(after_sequence=after_sequence, entries=entries, release=release, wait_seconds=wait_seconds), options=options)
        return response

    def list_approvals(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        status: Maybe[Literal["waiting", "answered", "expired", "cancelled"]] = OMIT,
        run: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.Approval, types.ApprovalPage]:
        """List the approvals that wait for the caller, newest first.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param status: Default `waiting`.
        :param run: Only the approvals of this run.
        """
        return Pages(self._connection, "/api/v1/approvals", given(page=page, page_size=page_size, status=status, run=run), options)

    def get_approval(self, approval: str, options: Optional[CallOptions] = None) -> types.Approval:
        """Get an approval."""
        response: types.Approval = self._connection.call("GET", path("/api/v1/approvals/{}", approval), options=options)
        return response

    def answer_approval(
        self,
        approval: str,
        *,
        data: Any,
        options: Optional[CallOptions] = None,
    ) -> types.Approval:
        """Answer an approval, so that its run continues.

        :param data: The answer, which must match the form.
        """
        response: types.Approval = self._connection.call("POST", path("/api/v1/approvals/{}/answer", approval), body=given(data=data), keyed=True, options=options)
        return response

    def create_approval_link(
        self,
        approval: str,
        *,
        to: str,
        expires_in_seconds: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.ApprovalLink:
        """Create a link by which a person without an account answers.

        :param to: To whom you send the link, as the journal will name its holder.
        :param expires_in_seconds: Default 7 days.
        """
        response: types.ApprovalLink = self._connection.call("POST", path("/api/v1/approvals/{}/links", approval), body=given(to=to, expires_in_seconds=expires_in_seconds), options=options)
        return response

    def get_linked_approval(self, token: str, options: Optional[CallOptions] = None) -> types.LinkedApproval:
        """Show the question of a link."""
        response: types.LinkedApproval = self._connection.call("GET", path("/api/v1/approval_links/{}", token), options=options)
        return response

    def answer_linked_approval(
        self,
        token: str,
        *,
        data: Any,
        options: Optional[CallOptions] = None,
    ) -> types.LinkedApproval:
        """Answer by a link.

        :param data: The answer, which must match the form.
        """
        response: types.LinkedApproval = self._connection.call("POST", path("/api/v1/approval_links/{}", token), body=given(data=data), options=options)
        return response
