"""Workflows in code as a function, which a webhook wakes when a run has work."""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, Coroutine, Mapping, MutableMapping, NamedTuple, Optional, Sequence, Union

from . import types
from ._async.connection import AsyncConnection
from ._async.runtime import Http
from ._workflow_execution import Execution, claim_of_function
from ._workflow_run import Run, Workflow
from .errors import QuarryError
from .webhooks import WebhookVerificationError, verify_webhook

__all__ = ["Function", "FunctionResponse", "serve"]

_CLAIM_PATH = "/api/v1/claimed_run"
# The length of the claims of functions.
_LEASE_SECONDS = 30
_BODY_BYTES_MAX = 1024 * 1024

_Message = MutableMapping[str, Any]


class FunctionResponse(NamedTuple):
    """What to send back: a status and a plain text."""

    status: int
    text: str


class Function:
    """A function of workflows. It is an ASGI application; for other servers, call `handle`."""

    def __init__(
        self,
        workflows: Sequence[Workflow[Any, Any]],
        secrets: Sequence[str],
        code_version: str,
        seconds: float,
        base_url: Optional[str],
        http: Optional[Http],
        on_error: Optional[Callable[[BaseException], object]],
    ) -> None:
        self._workflows = workflows
        self._secrets = secrets
        self._code_version = code_version
        self._seconds = seconds
        self._base_url = base_url
        self._http = http
        self._on_error = on_error

    async def handle(
        self,
        body: Union[bytes, str],
        headers: Mapping[str, str],
        *,
        wait_until: Optional[Callable[[Coroutine[Any, Any, None]], object]] = None,
    ) -> FunctionResponse:
        """Continues the run of a message until it ends, or has to wait.

        :param body: As it arrived, before any parsing.
        :param headers: Those of the request, in upper or lower case.
        :param wait_until: Gets the work, to be awaited after the response: the response is 202 immediately.
        """
        message = self._verify(body, headers)
        if message is None:
            return FunctionResponse(401, "The message is not signed with the secret of the webhook.")
        if message["type"] != "automation_run.ready":
            return FunctionResponse(200, "Nothing to do.")
        offer = message["data"]
        names = [offer.get("lookup_key"), offer["automation"], offer["workflow"]]
        found = next((one for one in self._workflows if one.name in names), None)
        if found is None:
            return FunctionResponse(404, f'There is no workflow "{names[0] or offer["workflow"]}" here.')
        if wait_until is not None:
            wait_until(self._continue_later(found, offer))
            return FunctionResponse(202, "The run is being continued.")
        try:
            await self._continue(found, offer)
        except Exception as error:
            self._report(error)
            return FunctionResponse(500, "The run could not be continued.")
        return FunctionResponse(200, "Done.")

    def _verify(self, body: Union[bytes, str], headers: Mapping[str, str]) -> Optional[Mapping[str, Any]]:
        for secret in self._secrets:
            try:
                return verify_webhook(body, headers, secret)
            except WebhookVerificationError:
                continue
        return None

    async def _continue_later(self, found: Workflow[Any, Any], offer: Mapping[str, Any]) -> None:
        try:
            await self._continue(found, offer)
        except Exception as error:
            self._report(error)

    async def _continue(self, found: Workflow[Any, Any], offer: Mapping[str, Any]) -> None:
        """Continues the run of an offer until it ends or waits, or the time of the function is over."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._seconds
        origin = self._base_url or str(offer["url"])[: -len(_CLAIM_PATH)]
        connection = AsyncConnection(origin, token=str(offer["claim"]), http=self._http)
        try:
            post = claim_of_function(connection, _LEASE_SECONDS)
            work: types.ClaimedJournal = await post("journal", {"code_version": self._code_version})
            execution = Execution(post, work, _LEASE_SECONDS)
            timer = loop.call_at(ends_at, execution.stop)
            try:
                await execution.execute(lambda payload: found.body(Run(execution), payload))
            finally:
                timer.cancel()
        except QuarryError as error:
            # Otherwise, another one has the run.
            if error.code != "claim_lost":
                raise
        finally:
            await connection.aclose()

    def _report(self, error: BaseException) -> None:
        if self._on_error is not None:
            self._on_error(error)

    async def __call__(
        self,
        scope: _Message,
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None:
        """The function as an ASGI application."""
        if scope["type"] != "http":
            # This is how an application says that it takes no other connections, and has nothing to start.
            raise ValueError(f"A function does not take connections of the type {scope['type']}.")
        response = await self._respond(scope, receive)
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.text.encode()})

    async def _respond(self, scope: _Message, receive: Callable[[], Awaitable[_Message]]) -> FunctionResponse:
        if scope["method"] != "POST":
            return FunctionResponse(405, "Send the messages of a webhook with POST.")
        body = b""
        more = True
        while more:
            part = await receive()
            body += part.get("body", b"")
            more = part["type"] == "http.request" and part.get("more_body", False)
            if len(body) > _BODY_BYTES_MAX:
                return FunctionResponse(413, "The message is too large.")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        return await self.handle(body, headers)


def serve(
    workflows: Sequence[Workflow[Any, Any]],
    *,
    secret: Union[str, Sequence[str]],
    code_version: str = "1",
    seconds: float = 240,
    base_url: Optional[str] = None,
    http: Optional[Http] = None,
    on_error: Optional[Callable[[BaseException], object]] = None,
) -> Function:
    """A function that a webhook wakes when a run of these workflows has work.

    :param secret: The secret of the webhook, `whsec_…`; while it is being replaced, both.
    :param code_version: The version of your code. A run that one version does not fit waits for another.
    :param seconds: The run is handed back after this time, and the function is woken again.
    :param base_url: Where the server is, if not where its messages say.
    :param http: An `httpx.AsyncClient` of yours, which stays open.
    :param on_error: Gets what kept the function from continuing a run. By default it is ignored: the run is continued
        later.
    """
    secrets = [secret] if isinstance(secret, str) else list(secret)
    return Function(workflows, secrets, code_version, seconds, base_url, http, on_error)
