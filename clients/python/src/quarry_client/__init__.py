"""The client of Quarry: every operation, typed, for threads (`Quarry`) and for tasks (`AsyncQuarry`)."""

from . import types
from ._async.client import AsyncQuarry
from ._async.connection import AsyncEventStream, AsyncPages
from ._async.connector import AsyncConnector
from ._async.session import AsyncSession
from ._events import StreamEvent
from ._shared import OMIT, Omit
from ._sync.client import Quarry
from ._sync.connection import EventStream, Pages
from ._sync.connector import Connector
from ._sync.session import Session
from .connectors import ConnectorBatch
from .data import data_of, json_schema, result_of
from .errors import QuarryError
from .tokens import MemoryStore, Tokens, TokenStore
from .webhooks import WebhookEvent, WebhookVerificationError, verify_webhook

__all__ = [
    "OMIT",
    "AsyncConnector",
    "AsyncEventStream",
    "AsyncPages",
    "AsyncQuarry",
    "AsyncSession",
    "Connector",
    "ConnectorBatch",
    "EventStream",
    "MemoryStore",
    "Omit",
    "Pages",
    "Quarry",
    "QuarryError",
    "Session",
    "StreamEvent",
    "TokenStore",
    "Tokens",
    "WebhookEvent",
    "WebhookVerificationError",
    "data_of",
    "json_schema",
    "result_of",
    "types",
    "verify_webhook",
]
