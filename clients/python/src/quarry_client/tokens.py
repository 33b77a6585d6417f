"""The tokens of a signed-in user, and where they are kept."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Protocol

from .errors import QuarryError


@dataclass(frozen=True)
class Tokens:
    access_token: str
    refresh_token: str
    expires_at: float
    """In seconds since 1970."""


class TokenStore(Protocol):
    """Where tokens are kept, such as a row of your sessions."""

    def load(self) -> Optional[Tokens]: ...

    def save(self, tokens: Optional[Tokens]) -> None: ...


class MemoryStore:
    def __init__(self) -> None:
        self._tokens: Optional[Tokens] = None

    def load(self) -> Optional[Tokens]:
        return self._tokens

    def save(self, tokens: Optional[Tokens]) -> None:
        self._tokens = tokens


def tokens_of(minted: Mapping[str, Any]) -> Tokens:
    """The tokens of a response of `auth/`."""
    expires_at = time.time() + minted.get("expires_in", 0)
    return Tokens(minted["token"], minted.get("refresh_token", ""), expires_at)


def signed_out(message: str) -> QuarryError:
    return QuarryError("signed_out", message)
