"""A signed-in user's tokens."""

from __future__ import annotations

import time
from typing import Any, Mapping, Optional

from ..errors import QuarryError
from ..tokens import MemoryStore, Tokens, TokenStore, signed_out, tokens_of
from .runtime import OneAtATime, Send

# Tokens are renewed this long before they expire, so that none expires on its way.
RENEW_BEFORE_SECONDS = 30.0


class AsyncSession:
    """Hands out the access token, and renews it once for all callers that wait.

    A refresh token is never sent twice, because the server takes the second time for theft and ends the session: if
    the response to one is lost, the user has to sign in again.
    """

    def __init__(self, store: Optional[TokenStore] = None) -> None:
        """Without a store, the tokens are in memory."""
        self._store: TokenStore = MemoryStore() if store is None else store
        self._send: Optional[Send] = None
        self._renewal: OneAtATime[Tokens] = OneAtATime()

    def attach(self, send: Send) -> None:
        """Called by the connection, which sends the requests."""
        self._send = send

    async def login(self, email: str, password: str) -> None:
        minted = await self._request("POST", "/api/v1/auth/login", {"email": email, "password": password})
        self._store.save(tokens_of(minted))

    async def logout(self) -> None:
        """Ends the session on the server, and forgets its tokens."""
        tokens = self._store.load()
        self._store.save(None)
        if tokens is not None and tokens.refresh_token:
            await self._request("POST", "/api/v1/auth/logout", {"refresh_token": tokens.refresh_token})

    async def access_token(self, refused: Optional[str] = None) -> str:
        """A token that is valid for a while. `refused` is one that the server no longer accepts."""
        tokens = self._store.load()
        if tokens is None:
            raise signed_out("Nobody is signed in. Call session.login first.")
        old = tokens
        if old.access_token != refused and time.time() < old.expires_at - RENEW_BEFORE_SECONDS:
            return old.access_token
        renewed = await self._renewal.run(lambda: self._renew(old))
        return renewed.access_token

    async def _renew(self, old: Tokens) -> Tokens:
        current = self._store.load()
        if current is None:
            raise signed_out("The user has signed out.")
        # Another caller renewed it before this one got its turn.
        if current.refresh_token != old.refresh_token:
            return current
        if current.refresh_token == "":
            raise self._ended()
        # A server that cannot be reached would take the token without a trace of it: ask first.
        await self._request("GET", "/healthz", None)
        # From here on the refresh token counts as used, whatever becomes of the response.
        self._store.save(Tokens(current.access_token, "", 0))
        try:
            minted = await self._request("POST", "/api/v1/auth/refresh", {"refresh_token": current.refresh_token})
        except QuarryError as error:
            if error.status != 429:
                raise self._ended() from error
            # It was refused unread.
            self._store.save(current)
            raise
        renewed = tokens_of(minted)
        self._store.save(renewed)
        return renewed

    def _ended(self) -> QuarryError:
        self._store.save(None)
        return signed_out("The session has ended. Sign in again.")

    async def _request(self, method: str, path: str, body: Optional[Mapping[str, Any]]) -> Any:
        if self._send is None:
            raise TypeError("Pass the session to the client first.")
        return await self._send(method, path, body)
