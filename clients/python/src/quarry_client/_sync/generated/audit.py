# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import List, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import Connection, Pages
from ..runtime import CallOptions


class AuditOperations:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        actor: Maybe[str] = OMIT,
        action: Maybe[str] = OMIT,
        resource: Maybe[str] = OMIT,
        since: Maybe[str] = OMIT,
        until: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.AuditEntry, types.AuditEntryPage]:
        """List changes, newest first.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param actor: usr_…, dak_…, dva_… or cso_…
        :param action: Only entries of this operation, such as `createKey`.
        :param resource: Only entries about this id.
        :param since: At or after this time (ISO 8601).
        :param until: Before this time (ISO 8601).
        """
        return Pages(self._connection, "/api/v1/audit", given(page=page, page_size=page_size, actor=actor, action=action, resource=resource, since=since, until=until), options)

    def list_credential_uses(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        credential: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.CredentialUse, types.CredentialUsePage]:
        """List the use of credentials by day.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param credential: usr_…, dak_… or tok_…
        """
        return Pages(self._connection, "/api/v1/credential_uses", given(page=page, page_size=page_size, credential=credential), options)

    def ledger(
        self,
        *,
        segment: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.LedgerHead:
        """Export the head of the ledger.

        :param segment: Returns the segment with this number instead of the newest one.
        """
        response: types.LedgerHead = self._connection.call("GET", "/api/v1/ledger", query=given(segment=segment), options=options)
        return response

    def verify(
        self,
        *,
        cursor: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.LedgerVerification:
        """Verify a part of the ledger.

        :param cursor: The `next_cursor` of the previous part.
        """
        response: types.LedgerVerification = self._connection.call("GET", "/api/v1/ledger/verification", query=given(cursor=cursor), options=options)
        return response

    def list_jobs(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> Pages[types.SetAsideJob, types.SetAsideJobPage]:
        """List background jobs that are set aside, newest first.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return Pages(self._connection, "/api/v1/jobs", given(page=page, page_size=page_size), options)

    def retry_job(self, job: str, options: Optional[CallOptions] = None) -> types.SetAsideJob:
        """Retry a job that is set aside."""
        response: types.SetAsideJob = self._connection.call("POST", path("/api/v1/jobs/{}/retry", job), keyed=True, options=options)
        return response
