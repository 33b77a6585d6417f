# Written by scripts/python-client.ts. Do not edit: npm run clients
"""All operations of a server, by group."""

from __future__ import annotations

from typing import Optional

from .. import _shared
from .connection import Connection
from .files import Files
from .generated.agents import AgentsOperations
from .generated.answers import AnswersOperations
from .generated.apps import AppsOperations
from .generated.audit import AuditOperations
from .generated.auth import AuthOperations
from .generated.automations import AutomationsOperations
from .generated.configs import ConfigsOperations
from .generated.erasures import ErasuresOperations
from .generated.events import EventsOperations
from .generated.groups import GroupsOperations
from .generated.installations import InstallationsOperations
from .generated.kv import KvOperations
from .generated.models import ModelsOperations
from .generated.orgs import OrgsOperations
from .generated.server import ServerOperations
from .generated.teams import TeamsOperations
from .generated.threads import ThreadsOperations
from .groups import Extractions, Knowledge, Runs, Webhooks
from .runtime import Http, TokenSource
from .session import Session
from .users import Users


class Quarry:
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
        session: Optional[Session] = None,
        app: Optional[str] = None,
        timeout: float = _shared.TIMEOUT_SECONDS,
        retries: int = _shared.RETRIES,
        http: Optional[Http] = None,
    ) -> None:
        connection = Connection(
            base_url, key=key, token=token, session=session, app=app, timeout=timeout, retries=retries, http=http
        )
        self.connection = connection
        self.agents = AgentsOperations(connection)
        self.answers = AnswersOperations(connection)
        self.apps = AppsOperations(connection)
        self.audit = AuditOperations(connection)
        self.auth = AuthOperations(connection)
        self.automations = AutomationsOperations(connection)
        self.configs = ConfigsOperations(connection)
        self.events = EventsOperations(connection)
        self.extractions = Extractions(connection)
        self.files = Files(connection)
        self.installations = InstallationsOperations(connection)
        self.knowledge = Knowledge(connection)
        self.kv = KvOperations(connection)
        self.models = ModelsOperations(connection)
        self.orgs = OrgsOperations(connection)
        self.runs = Runs(connection)
        self.server = ServerOperations(connection)
        self.groups = GroupsOperations(connection)
        self.erasures = ErasuresOperations(connection)
        self.teams = TeamsOperations(connection)
        self.threads = ThreadsOperations(connection)
        self.users = Users(connection)
        self.webhooks = Webhooks(connection)

    def __enter__(self) -> Quarry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections to the server."""
        self.connection.close()
