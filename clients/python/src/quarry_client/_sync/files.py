# Written by scripts/python-client.ts. Do not edit: npm run clients
"""Uploads of any size, and downloads."""

from __future__ import annotations

import base64
import io
import os
from typing import IO, Iterator, Callable, Dict, Optional, TypedDict, Union
from urllib.parse import quote, urlsplit

from .. import types
from .._shared import Request, path
from ..errors import QuarryError
from .connection import Connection, json_of
from .generated.files import FilesOperations
from .runtime import CallOptions, in_thread, pause

# Larger files are sent in pieces, each of which is repeated alone when the connection breaks.
PIECE_BYTES = 8 * 1024 * 1024
PIECE_ATTEMPTS_MAX = 8

UploadSource = Union[str, "os.PathLike[str]", bytes, IO[bytes]]
Progress = Callable[[int, int], None]


class FileOwner(TypedDict, total=False):
    agent: str
    org: str
    team: str
    user: str
    automation_run: str
    """The run that makes the file: `run` of the step that uploads it."""
    share: bool
    """Whether an image gets a public URL."""


class Files(FilesOperations):
    """Upload, update, sharing and download."""

    def upload(
        self,
        source: UploadSource,
        *,
        filename: Optional[str] = None,
        content_type: str = "application/octet-stream",
        size: Optional[int] = None,
        owner: Optional[FileOwner] = None,
        on_progress: Optional[Progress] = None,
        options: Optional[CallOptions] = None,
    ) -> types.StoredFile:
        """Stores a file. Files over 8 MiB are sent in pieces, and continue after a broken connection.

        :param source: A path, bytes, or a file that is open for reading bytes.
        :param filename: Default: the name of the file.
        :param size: In bytes; needed for a source over 8 MiB that cannot be searched for its end.
        :param on_progress: Called with the stored bytes and the size whenever more bytes are stored.
        """
        name = filename or _name_of(source)
        if isinstance(source, (str, os.PathLike)):
            given = source
            opened: IO[bytes] = in_thread(lambda: open(given, "rb"))
        else:
            opened = io.BytesIO(source) if isinstance(source, bytes) else source
        try:
            upload = _Upload(self._connection, opened, name, content_type, owner or {}, on_progress, options)
            return upload.send(size)
        finally:
            if opened is not source:
                opened.close()

    def content(
        self, file: str, *, range: Optional[str] = None, options: Optional[CallOptions] = None
    ) -> bytes:
        """The contents of a file, or a part of them: `range` is such as `bytes=0-1023`."""
        request = self._content_request(file, range, options)
        pieces = self._connection.pieces(request, options, authenticates=False)
        return b"".join([piece for piece in pieces])

    def iter_content(self, file: str, *, options: Optional[CallOptions] = None) -> Iterator[bytes]:
        """The contents of a file in pieces, for files that do not fit into memory."""
        request = self._content_request(file, None, options)
        for piece in self._connection.pieces(request, options, authenticates=False):
            yield piece

    def _content_request(self, file: str, range: Optional[str], options: Optional[CallOptions]) -> Request:
        url = urlsplit((self.get(file, options=options))["url"])
        headers = {} if range is None else {"range": range}
        # By way of the connection, whose base URL the caller can reach.
        return Request("GET", f"{url.path}?{url.query}", headers=headers, streamed=True)


class _Upload:
    def __init__(
        self,
        connection: Connection,
        source: IO[bytes],
        filename: str,
        content_type: str,
        owner: FileOwner,
        on_progress: Optional[Progress],
        options: Optional[CallOptions],
    ) -> None:
        self._connection = connection
        self._source = source
        self._filename = filename
        self._content_type = content_type
        self._owner = owner
        self._on_progress = on_progress
        self._options = options

    def send(self, size: Optional[int]) -> types.StoredFile:
        known = in_thread(lambda: _size_of(self._source)) if size is None else size
        first = self._read(PIECE_BYTES + 1 if known is None else min(known, PIECE_BYTES + 1))
        if len(first) <= PIECE_BYTES:
            return self._send_whole(first)
        if known is None:
            raise ValueError("Give the size of the source in bytes.")
        return self._send_in_pieces(first, known)

    def _read(self, count: int) -> bytes:
        """As many bytes, unless the source ends. A pipe returns fewer at a time."""
        parts = []
        while count > 0:
            left = count
            part = in_thread(lambda: self._source.read(left))
            if not part:
                break
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _send_whole(self, content: bytes) -> types.StoredFile:
        headers = {"content-type": self._content_type, "x-filename": quote(self._filename, safe="")}
        request = Request("POST", "/api/v1/files/uploads", self._owner, headers, content=content, keyed=True)
        stored: types.StoredFile = json_of(self._connection.request(request, self._options))
        self._report(len(content), len(content))
        return stored

    def _send_in_pieces(self, piece: bytes, size: int) -> types.StoredFile:
        """By tus: creates an upload, and appends pieces to what is stored."""
        upload = self._create(size)
        place = path("/api/v1/uploads/{}", upload["id"])
        start = offset = 0
        failures = 0
        while True:
            try:
                offset = self._append(place, offset, piece[offset - start :])
                failures = 0
                self._report(offset, size)
            except QuarryError as error:
                failures += 1
                if failures >= PIECE_ATTEMPTS_MAX or not _may_resume(error):
                    raise
                pause(0.25 * 2**failures, self._options)
                stored = self._connection.call("GET", place, options=self._options)
                offset = stored["offset"]
            if not start <= offset <= start + len(piece):
                raise QuarryError("bad_response", "The server has another part of the file than it was sent.")
            if offset == size:
                break
            if offset == start + len(piece):
                start, piece = offset, self._read(min(PIECE_BYTES, size - offset))
                if not piece:
                    raise ValueError(f"The source ended after {offset} of {size} bytes.")
        found: types.StoredFile = self._connection.call(
            "GET", path("/api/v1/files/{}", upload["file"]), options=self._options
        )
        return found

    def _create(self, size: int) -> types.Upload:
        members: Dict[str, str] = {"filename": self._filename, "content_type": self._content_type}
        for name, value in self._owner.items():
            members[name] = str(value).lower() if isinstance(value, bool) else str(value)
        metadata = ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in members.items())
        headers = {
            "tus-resumable": "1.0.0",
            "upload-length": str(size),
            "upload-metadata": metadata,
            "content-type": "application/offset+octet-stream",
        }
        request = Request("POST", "/api/v1/uploads", headers=headers, content=b"", keyed=True)
        created: types.Upload = json_of(self._connection.request(request, self._options))
        return created

    def _append(self, place: str, offset: int, content: bytes) -> int:
        headers = {
            "tus-resumable": "1.0.0",
            "upload-offset": str(offset),
            "content-type": "application/offset+octet-stream",
        }
        once: CallOptions = {} if self._options is None else self._options.copy()
        once["retries"] = 0
        response = self._connection.request(Request("PATCH", place, headers=headers, content=content), once)
        return int(response.headers["upload-offset"])

    def _report(self, stored: int, size: int) -> None:
        if self._on_progress is not None:
            self._on_progress(stored, size)


def _name_of(source: UploadSource) -> str:
    named = source if isinstance(source, (str, os.PathLike)) else getattr(source, "name", None)
    if not isinstance(named, (str, os.PathLike)):
        raise ValueError("Give the upload a filename.")
    return os.path.basename(named)


def _size_of(source: IO[bytes]) -> Optional[int]:
    """The bytes from the current position to the end; None for a pipe."""
    try:
        if not source.seekable():
            return None
        position = source.tell()
        end = source.seek(0, os.SEEK_END)
        source.seek(position)
        return end - position
    except (AttributeError, OSError):
        return None


def _may_resume(error: QuarryError) -> bool:
    """A piece that did not arrive, or that another attempt still holds."""
    if error.status is None:
        return error.code in ("unreachable", "timed_out")
    return error.status in (409, 423, 429) or error.status >= 500
