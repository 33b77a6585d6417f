# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import AsyncConnection, AsyncPages
from ..runtime import CallOptions


class AsyncFilesOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self,
        *,
        filename: str,
        content_type: str,
        data: str,
        acl: Maybe[types.AclInput] = OMIT,
        agent: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        team: Maybe[str] = OMIT,
        user: Maybe[str] = OMIT,
        share: Maybe[bool] = OMIT,
        automation_run: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.StoredFile:
        """Upload a file.

        :param filename: The filename with its extension.
        :param content_type: MIME type.
        :param data: The contents in base64 (RFC 4648, section 4).
        :param agent: Associated agent, whose org owns the file.
        :param org: Default: the caller’s.
        :param team: Owner; takes precedence over `user`.
        :param user: Owner. Default: the calling user, unless a team is named.
        :param share: Make the file public at a permanent URL. Images only.
        :param automation_run: The run (atr_…) that made the file, for programs that execute runs: the file goes with the run if its retention says so. Requires a secret key or a developer token.
        """
        response: types.StoredFile = await self._connection.call("POST", "/api/v1/files", body=given(filename=filename, content_type=content_type, data=data, acl=acl, agent=agent, org=org, team=team, user=user, share=share, automation_run=automation_run), keyed=True, options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        width: Maybe[Literal[64, 128, 256, 512, 1024, 2048]] = OMIT,
        format: Maybe[Literal["webp", "jpeg", "png"]] = OMIT,
        agent: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        team: Maybe[str] = OMIT,
        user: Maybe[str] = OMIT,
        content_type: Maybe[str] = OMIT,
        prefix: Maybe[str] = OMIT,
        automation_run: Maybe[str] = OMIT,
        sort: Maybe[Literal["created_at", "-created_at", "filename", "-filename", "size", "-size"]] = OMIT,
        search: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.StoredFile, types.StoredFilePage]:
        """List files.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param width: Adds `picture_url` to pictures and PDFs. The small picture is at most this many pixels wide.
        :param format: Format of `picture_url`. Default `webp`.
        :param agent: Only files of this agent (agt_…).
        :param org: Only files of this organisation (org_…).
        :param team: Only files of this team (tem_…).
        :param user: Only files of this user (usr_…).
        :param content_type: A MIME type, or a family such as `image/*`.
        :param prefix: Only names with this prefix, such as `reports/`.
        :param automation_run: Only files that this run (atr_…) made: with its nodes, by uploads that named it, and by the extractions that it started. A key needs `automations:read`, too.
        :param sort: The order; with `-`, the largest or newest first. Default `-created_at`.
        :param search: Part of the filename, case-insensitive.
        """
        return AsyncPages(self._connection, "/api/v1/files", given(page=page, page_size=page_size, width=width, format=format, agent=agent, org=org, team=team, user=user, content_type=content_type, prefix=prefix, automation_run=automation_run, sort=sort, search=search), options)

    async def get(
        self,
        file: str,
        *,
        width: Maybe[Literal[64, 128, 256, 512, 1024, 2048]] = OMIT,
        format: Maybe[Literal["webp", "jpeg", "png"]] = OMIT,
        page: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.StoredFile:
        """Get a file with a fresh download URL.

        :param width: Adds `picture_url` to pictures and PDFs. The small picture is at most this many pixels wide.
        :param format: Format of `picture_url`. Default `webp`.
        :param page: The page of a PDF that `picture_url` shows, from 1. Default 1.
        """
        response: types.StoredFile = await self._connection.call("GET", path("/api/v1/files/{}", file), query=given(width=width, format=format, page=page), options=options)
        return response

    async def update(
        self,
        file: str,
        *,
        filename: Maybe[str] = OMIT,
        provider_metadata: Maybe[Dict[str, Any]] = OMIT,
        share: Maybe[bool] = OMIT,
        acl: Maybe[types.AclInput] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.StoredFile:
        """Update a file’s name, metadata, sharing or access list.

        :param filename: The filename with its extension.
        :param provider_metadata: Replaces the whole map.
        :param share: Whether the public URL of the picture works.
        """
        response: types.StoredFile = await self._connection.call("PATCH", path("/api/v1/files/{}", file), body=given(filename=filename, provider_metadata=provider_metadata, share=share, acl=acl), options=options)
        return response

    async def delete(self, file: str, options: Optional[CallOptions] = None) -> None:
        """Delete a file and its contents."""
        await self._connection.call("DELETE", path("/api/v1/files/{}", file), options=options)

    async def create_upload_url(
        self,
        *,
        filename: str,
        content_type: str,
        size: Maybe[int] = OMIT,
        checksum: Maybe[str] = OMIT,
        expires_in: Maybe[int] = OMIT,
        agent: Maybe[str] = OMIT,
        org: Maybe[str] = OMIT,
        team: Maybe[str] = OMIT,
        user: Maybe[str] = OMIT,
        share: Maybe[bool] = OMIT,
        automation_run: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.UploadLink:
        """Create a URL for uploading one file without a credential.

        :param filename: The filename with its extension.
        :param content_type: MIME type.
        :param size: Maximum number of bytes.
        :param checksum: Expected SHA-256 in hex.
        :param expires_in: Seconds. Default 3600.
        :param agent: Associated agent, whose org owns the file.
        :param org: Default: the caller’s.
        :param team: Owner; takes precedence over `user`.
        :param user: Owner. Default: the calling user, unless a team is named.
        :param share: Make the file public at a permanent URL. Images only.
        :param automation_run: The run (atr_…) that made the file, for programs that execute runs: the file goes with the run if its retention says so. Requires a secret key or a developer token.
        """
        response: types.UploadLink = await self._connection.call("POST", "/api/v1/files/upload_urls", body=given(filename=filename, content_type=content_type, size=size, checksum=checksum, expires_in=expires_in, agent=agent, org=org, team=team, user=user, share=share, automation_run=automation_run), options=options)
        return response

    def list_uploads(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.Upload, types.UploadPage]:
        """List unfinished uploads.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, "/api/v1/uploads", given(page=page, page_size=page_size), options)

    async def get_upload(self, upload: str, options: Optional[CallOptions] = None) -> types.Upload:
        """Read how much of an upload is stored."""
        response: types.Upload = await self._connection.call("GET", path("/api/v1/uploads/{}", upload), options=options)
        return response

    async def delete_upload(self, upload: str, options: Optional[CallOptions] = None) -> None:
        """Delete an upload and its bytes."""
        await self._connection.call("DELETE", path("/api/v1/uploads/{}", upload), options=options)
