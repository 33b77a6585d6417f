# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import List, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import AsyncConnection, AsyncPages
from ..runtime import CallOptions


class AsyncAuthOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def login(
        self,
        *,
        email: str,
        password: str,
        options: Optional[CallOptions] = None,
    ) -> types.MintedToken:
        """Sign in with e-mail and password.

        :param email: The email address of the user; upper and lower case are the same.
        :param password: The password.
        """
        response: types.MintedToken = await self._connection.call("POST", "/api/v1/auth/login", body=given(email=email, password=password), options=options)
        return response

    async def refresh(self, *, refresh_token: str, options: Optional[CallOptions] = None) -> types.MintedToken:
        """Exchange a refresh token for a new pair.

        :param refresh_token: The refresh token (`rt_…`). Each can be used once.
        """
        response: types.MintedToken = await self._connection.call("POST", "/api/v1/auth/refresh", body=given(refresh_token=refresh_token), options=options)
        return response

    async def logout(self, *, refresh_token: str, options: Optional[CallOptions] = None) -> None:
        """End a session.

        :param refresh_token: The refresh token (`rt_…`). Each can be used once.
        """
        await self._connection.call("POST", "/api/v1/auth/logout", body=given(refresh_token=refresh_token), options=options)

    async def create_issuer(
        self,
        *,
        issuer: str,
        audience: str,
        jwks_url: Maybe[Optional[str]] = OMIT,
        create_users: Maybe[bool] = OMIT,
        link_by_email: Maybe[bool] = OMIT,
        claims: Maybe[types.CreateIdentityIssuerRequestClaims] = OMIT,
        console: Maybe[Optional[types.CreateIdentityIssuerRequestConsole]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.IdentityIssuer:
        """Create an issuer of external identities.

        :param issuer: The issuer, exactly as its tokens name it, such as https://login.example.com.
        :param audience: The audience of tokens for this app.
        :param jwks_url: Where the public keys of the issuer are. Default: as its discovery document says.
        :param create_users: Whether an unknown account becomes a new user. Default false.
        :param link_by_email: Whether an unknown account is linked to the existing user with its e-mail, if the token says `email_verified`. Default false.
        :param claims: Which claims name the organisation, role, teams and name of a user. Other claims are ignored.
        :param console: How the web console signs in with this issuer.
        """
        response: types.IdentityIssuer = await self._connection.call("POST", "/api/v1/identity_issuers", body=given(issuer=issuer, audience=audience, jwks_url=jwks_url, create_users=create_users, link_by_email=link_by_email, claims=claims, console=console), keyed=True, options=options)
        return response

    def list_issuers(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.IdentityIssuer, types.IdentityIssuerPage]:
        """List issuers of external identities.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, "/api/v1/identity_issuers", given(page=page, page_size=page_size), options)

    async def get_issuer(
        self,
        identity_issuer: str,
        options: Optional[CallOptions] = None,
    ) -> types.IdentityIssuer:
        """Get an issuer of external identities."""
        response: types.IdentityIssuer = await self._connection.call("GET", path("/api/v1/identity_issuers/{}", identity_issuer), options=options)
        return response

    async def update_issuer(
        self,
        identity_issuer: str,
        *,
        audience: Maybe[str] = OMIT,
        jwks_url: Maybe[Optional[str]] = OMIT,
        create_users: Maybe[bool] = OMIT,
        link_by_email: Maybe[bool] = OMIT,
        claims: Maybe[types.UpdateIdentityIssuerRequestClaims] = OMIT,
        console: Maybe[Optional[types.UpdateIdentityIssuerRequestConsole]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.IdentityIssuer:
        """Update an issuer of external identities.

        :param audience: The audience of tokens for this app.
        :param jwks_url: Where the public keys of the issuer are. Default: as its discovery document says.
        :param create_users: Whether an unknown account becomes a new user. Default false.
        :param link_by_email: Whether an unknown account is linked to the existing user with its e-mail, if the token says `email_verified`. Default false.
        :param claims: Which claims name the organisation, role, teams and name of a user. Other claims are ignored.
        :param console: How the web console signs in with this issuer.
        """
        response: types.IdentityIssuer = await self._connection.call("PATCH", path("/api/v1/identity_issuers/{}", identity_issuer), body=given(audience=audience, jwks_url=jwks_url, create_users=create_users, link_by_email=link_by_email, claims=claims, console=console), options=options)
        return response

    async def delete_issuer(self, identity_issuer: str, options: Optional[CallOptions] = None) -> None:
        """Delete an issuer of external identities."""
        await self._connection.call("DELETE", path("/api/v1/identity_issuers/{}", identity_issuer), options=options)

    def list_assistants(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        user: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.ConnectedAssistant, types.ConnectedAssistantPage]:
        """List connected assistants.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param user: Only those of this user, usr_….
        """
        return AsyncPages(self._connection, "/api/v1/connected_assistants", given(page=page, page_size=page_size, user=user), options)

    async def get_assistant(
        self,
        connected_assistant: str,
        options: Optional[CallOptions] = None,
    ) -> types.ConnectedAssistant:
        """Get a connected assistant."""
        response: types.ConnectedAssistant = await self._connection.call("GET", path("/api/v1/connected_assistants/{}", connected_assistant), options=options)
        return response

    async def disconnect_assistant(self, connected_assistant: str, options: Optional[CallOptions] = None) -> None:
        """Delete a connected assistant."""
        await self._connection.call("DELETE", path("/api/v1/connected_assistants/{}", connected_assistant), options=options)
