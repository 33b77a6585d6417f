# Written by scripts/python-client.ts. Do not edit: npm run clients
"""Sends requests: authentication, deadlines, repeats, errors. Every group of operations uses one connection."""

from __future__ import annotations

import json
import uuid
from typing import Any, Iterator, Dict, Generic, Mapping, Optional, TypeVar

import httpx

from .. import _shared
from .._events import Data, EventReader, RawEvent, StreamEvent
from .._shared import Request, is_repeatable, next_page, query_text, seconds_until_repeat
from ..errors import QuarryError, read_error
from .runtime import CallOptions, Http, TokenSource, check, pause, token_of
from .session import Session

Item = TypeVar("Item")
Page = TypeVar("Page")

# The server sends a heartbeat every 15 seconds; a stream that is silent for longer is broken.
STREAM_SILENCE_SECONDS_MAX = 60.0
RECONNECT_SECONDS = 1.0
STREAM_ATTEMPTS_MAX = 10


class Connection:
    def __init__(
        self,
        base_url: str,
        *,
        key: Optional[str] = None,
        token: Optional[TokenSource] = None,
        session: Optional[Session] = None,
        app: Optional[str] = None,
        timeout: float = _shared.TIMEOUT_SECONDS,
        retries: int = _shared.RETRIES,
        http: Optional[Http] = None,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"base_url must be an address such as http://127.0.0.1:8080, not {base_url!r}.")
        self.base_url = base_url.rstrip("/")
        self._headers = {
            name: value for name, value in {"x-api-key": key, "x-app": app}.items() if value is not None
        }
        self._token = token
        self._session = session
        self._timeout = timeout
        self._retries = retries
        self._owns_http = http is None
        self._http = Http() if http is None else http
        if session is not None:
            session.attach(self._call_for_session)

    def close(self) -> None:
        """Closes the connections, unless they belong to an `http` of yours."""
        if self._owns_http:
            self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        body: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
        keyed: bool = False,
        options: Optional[CallOptions] = None,
    ) -> Any:
        """The JSON of the response; None if there is none."""
        request = Request(method, path, query or {}, headers or {}, body, keyed=keyed)
        return json_of(self.request(request, options))

    def request(
        self, request: Request, options: Optional[CallOptions] = None, authenticates: bool = True
    ) -> httpx.Response:
        """The response, once its status is a success."""
        set_options: CallOptions = {} if options is None else options
        retries = set_options.get("retries", self._retries)
        key = set_options.get("idempotency_key") or (str(uuid.uuid4()) if request.keyed and retries > 0 else None)
        repeatable = is_repeatable(request, key)
        refused_token: Optional[str] = None
        attempt = 0
        while True:
            check(options)
            token = self._current_token(refused_token) if authenticates else None
            try:
                return self._attempt(request, set_options, token, key)
            except QuarryError as error:
                failure = error
            # The server did nothing: the token had expired.
            if failure.status == 401 and self._session and token is not None and refused_token is None:
                refused_token = token
                continue
            # A repeated DELETE whose first response was lost.
            if attempt > 0 and request.method == "DELETE" and failure.status == 404:
                return httpx.Response(204)
            seconds = seconds_until_repeat(failure, attempt, repeatable) if attempt < retries else None
            if seconds is None:
                raise failure
            pause(seconds, options)
            attempt += 1

    def pieces(
        self, request: Request, options: Optional[CallOptions] = None, authenticates: bool = True
    ) -> Iterator[bytes]:
        """The body of a streamed response in pieces, as they arrive."""
        response = self.request(request, options, authenticates)
        try:
            for piece in response.iter_bytes():
                check(options)
                yield piece
        except httpx.TransportError as cause:
            raise QuarryError("unreachable", "The response broke off.") from cause
        finally:
            response.close()

    def _attempt(
        self, request: Request, options: CallOptions, token: Optional[str], key: Optional[str]
    ) -> httpx.Response:
        headers: Dict[str, str] = dict(self._headers)
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        if key is not None:
            headers["idempotency-key"] = key
        asked = query_text(request.query)
        if asked:
            # Without this, the server ignores a parameter that it does not have, such as a misspelt filter.
            headers["prefer"] = "handling=strict"
        content = request.content
        if request.body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(request.body, ensure_ascii=False, allow_nan=False).encode()
        headers.update(options.get("headers", {}))
        headers.update(request.headers)
        seconds = options.get("timeout", self._timeout)
        timeout = httpx.Timeout(seconds, read=STREAM_SILENCE_SECONDS_MAX) if request.streamed else httpx.Timeout(seconds)
        url = f"{self.base_url}{request.path}{asked}"
        try:
            built = self._http.build_request(request.method, url, headers=headers, content=content, timeout=timeout)
            # A download may be redirected to where the file is; a credential is not sent there.
            response = self._http.send(built, stream=True, follow_redirects=token is None and request.streamed)
            if not response.is_success or not request.streamed:
                self._read_whole(response)
        except httpx.TimeoutException as cause:
            raise QuarryError("timed_out", f"The server did not respond within {seconds:g} s.") from cause
        except (httpx.TransportError, httpx.StreamError) as cause:
            raise QuarryError("unreachable", f"{self.base_url} cannot be reached, or the connection broke.") from cause
        if response.is_success:
            return response
        raise read_error(response.status_code, response.headers, response.content)

    def _read_whole(self, response: httpx.Response) -> None:
        try:
            response.read()
        finally:
            response.close()

    def _current_token(self, refused: Optional[str]) -> Optional[str]:
        if self._session is not None:
            return self._session.access_token(refused)
        return None if self._token is None else token_of(self._token)

    def _call_for_session(self, method: str, path: str, body: Optional[Mapping[str, Any]]) -> Any:
        # Without repeats: a refresh token must not be sent twice.
        return json_of(self.request(Request(method, path, body=body), {"retries": 0}, authenticates=False))


def json_of(response: httpx.Response) -> Any:
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError as cause:
        raise QuarryError("bad_response", "The server did not return JSON. Check the base URL.") from cause


class Pages(Generic[Item, Page]):
    """A list: iterate over it for all entries of all pages, or get one page with its totals."""

    def __init__(
        self, connection: Connection, path: str, query: Optional[Mapping[str, Any]], options: Optional[CallOptions]
    ) -> None:
        self._connection = connection
        self._path = path
        self._query = query or {}
        self._options = options

    def page(self) -> Page:
        """The first page, or the one that the query names."""
        page: Page = self._load({})
        return page

    def __iter__(self) -> Iterator[Item]:
        following: Optional[Dict[str, Any]] = {}
        while following is not None:
            page = self._load(following)
            for item in page["data"]:
                yield item
            following = next_page(page)

    def _load(self, more: Mapping[str, Any]) -> Any:
        return self._connection.call("GET", self._path, query={**self._query, **more}, options=self._options)


class EventStream(Generic[Data]):
    """The events of a stream, which ends when its subject ends.

    A connection that breaks, or that the server closes to move its readers, is opened again after the last event;
    after ten attempts without an event, the error is raised. `close`, or the end of a `with` block, closes it.
    """

    def __init__(
        self, connection: Connection, path: str, query: Optional[Mapping[str, Any]], options: Optional[CallOptions]
    ) -> None:
        self._connection = connection
        self._path = path
        self._query = query or {}
        self._options = options
        self._last_id: Optional[str] = None
        self._response: Optional[httpx.Response] = None
        self._is_closed = False
        self._events = self._read()

    def __iter__(self) -> Iterator[StreamEvent[Data]]:
        return self._events

    def __enter__(self) -> EventStream[Data]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._is_closed = True
        self._disconnect()

    def _disconnect(self) -> None:
        if self._response is not None:
            self._response.close()

    def _read(self) -> Iterator[StreamEvent[Data]]:
        attempts = 0
        while not self._is_closed:
            retry_seconds: Optional[float] = None
            try:
                response = self._response = self._open()
                for raw in self._raw_events(response):
                    attempts = 0
                    retry_seconds = raw.retry_seconds if raw.retry_seconds is not None else retry_seconds
                    self._last_id = raw.id if raw.id is not None else self._last_id
                    if raw.data != "":
                        yield StreamEvent(raw.event, json.loads(raw.data), raw.id)
                # A server that closes a stream for another reason than its end says when to come back.
                if retry_seconds is None or self._is_closed:
                    return
            except QuarryError as error:
                attempts += 1
                if attempts >= STREAM_ATTEMPTS_MAX or not _may_reopen(error):
                    raise
            finally:
                self._disconnect()
            seconds = RECONNECT_SECONDS * max(1, attempts) if retry_seconds is None else retry_seconds
            pause(seconds, self._options)

    def _open(self) -> httpx.Response:
        headers = {"accept": "text/event-stream"}
        if self._last_id is not None:
            headers["last-event-id"] = self._last_id
        request = Request("GET", self._path, self._query, headers, streamed=True)
        return self._connection.request(request, self._options)

    def _raw_events(self, response: httpx.Response) -> Iterator[RawEvent]:
        reader = EventReader()
        try:
            for piece in response.iter_bytes():
                check(self._options)
                for raw in reader.feed(piece):
                    yield raw
        except httpx.StreamClosed:
            # By `close`, between two events.
            return
        except httpx.TransportError as cause:
            raise QuarryError("unreachable", "The stream broke off.") from cause


def _may_reopen(error: QuarryError) -> bool:
    return error.code in ("unreachable", "timed_out") if error.status is None else error.status >= 500
