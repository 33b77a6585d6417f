"""All operations of a server, by group."""

from __future__ import annotations

from typing import Optional

from .. import _shared
from .connection import AsyncConnection
from .files import AsyncFiles
from .generated.agents import AsyncAgentsOperations
from .generated.answers import AsyncAnswersOperations
from .generated.apps import AsyncAppsOperations
from .generated.audit import AsyncAuditOperations
from .generated.auth import AsyncAuthOperations
from .generated.automations import AsyncAutomationsOperations
from .generated.configs import AsyncConfigsOperations
from .generated.erasures import AsyncErasuresOperations
from .generated.events import AsyncEventsOperations
from .generated.groups import AsyncGroupsOperations
from .generated.installations import AsyncInstallationsOperations
from .generated.kv import AsyncKvOperations
from .generated.models import AsyncModelsOperations
from .generated.orgs import AsyncOrgsOperations
from .generated.server import AsyncServerOperations
from .generated.teams import AsyncTeamsOperations
from .generated.threads import AsyncThreadsOperations
from .groups import AsyncExtractions, AsyncKnowledge, AsyncRuns, AsyncWebhooks
from .runtime import Http, TokenSource
from .session import AsyncSession
from .users import AsyncUsers


class AsyncQuarry:
    """A server, and the caller that requests act as.

    :param base_url: Where the server is, such as `http://127.0.0.1:8080`.
    :param key: A secret key (`sk_…`) for your own server, or a publishable key (`pk_…`) with `session` or `token`.
    :param token: A token of a user or a developer, or a function that returns the current one.
    :param session: A user's session, which renews its token by itself. It needs the publishable `key`.
    :param app: The app (`dap_…`) that a developer token acts in.
    :param timeout: How long to wait for the server, in seconds: to connect, and for each part of a response.
    :param retries: How often a request is repeated where that is safe.
    :param http: A client of httpx, with a proxy or certificates of your own. You close it yourself.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: Optional[str] = None,
        token: Optional[TokenSource] = None,
        session: Optional[AsyncSession] = None,
        app: Optional[str] = None,
        timeout: float = _shared.TIMEOUT_SECONDS,
        retries: int = _shared.RETRIES,
        http: Optional[Http] = None,
    ) -> None:
        connection = AsyncConnection(
            base_url, key=key, token=token, session=session, app=app, timeout=timeout, retries=retries, http=http
        )
        self.connection = connection
        self.agents = AsyncAgentsOperations(connection)
        self.answers = AsyncAnswersOperations(connection)
        self.apps = AsyncAppsOperations(connection)
        self.audit = AsyncAuditOperations(connection)
        self.auth = AsyncAuthOperations(connection)
        self.automations = AsyncAutomationsOperations(connection)
        self.configs = AsyncConfigsOperations(connection)
        self.events = AsyncEventsOperations(connection)
        self.extractions = AsyncExtractions(connection)
        self.files = AsyncFiles(connection)
        self.installations = AsyncInstallationsOperations(connection)
        self.knowledge = AsyncKnowledge(connection)
        self.kv = AsyncKvOperations(connection)
        self.models = AsyncModelsOperations(connection)
        self.orgs = AsyncOrgsOperations(connection)
        self.runs = AsyncRuns(connection)
        self.server = AsyncServerOperations(connection)
        self.groups = AsyncGroupsOperations(connection)
        self.erasures = AsyncErasuresOperations(connection)
        self.teams = AsyncTeamsOperations(connection)
        self.threads = AsyncThreadsOperations(connection)
        self.users = AsyncUsers(connection)
        self.webhooks = AsyncWebhooks(connection)

    async def __aenter__(self) -> AsyncQuarry:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections to the server."""
        await self.connection.aclose()
