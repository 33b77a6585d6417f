# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import List, Literal, Optional

from ... import types
from ..._shared import OMIT, Maybe, given, path
from ..connection import AsyncConnection, AsyncPages
from ..runtime import CallOptions


class AsyncModelsOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self,
        *,
        name: str,
        provider: Literal["openai", "anthropic", "google", "cohere"],
        model: str,
        kind: Maybe[Literal["embedding", "rerank"]] = OMIT,
        url: Maybe[str] = OMIT,
        key: Maybe[str] = OMIT,
        context_tokens: Maybe[int] = OMIT,
        output_tokens: Maybe[int] = OMIT,
        timeout_seconds: Maybe[int] = OMIT,
        dimensions: Maybe[int] = OMIT,
        batch_texts: Maybe[int] = OMIT,
        query_prefix: Maybe[str] = OMIT,
        passage_prefix: Maybe[str] = OMIT,
        query_input_type: Maybe[str] = OMIT,
        passage_input_type: Maybe[str] = OMIT,
        fusion_weight: Maybe[float] = OMIT,
        modalities: Maybe[List[Literal["text", "image", "file"]]] = OMIT,
        prices: Maybe[types.CreateModelRequestPrices] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Model:
        """Create a model.

        :param name: The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases.
        :param provider: The protocol: `openai` for every server with chat completions or embeddings as OpenAI has them, `anthropic`, `google`, or `cohere` for its embeddings and reranking.
        :param model: The model, as its provider names it.
        :param kind: What it is for, if not to write text: `embedding` for the vectors of sources, `rerank` for the order of results. Both need the provider `openai` or `cohere`.
        :param url: The base URL, up to and including the version. Required for `openai`.
        :param key: The key of the provider. It is never returned, and is only sent to the host of `url`.
        :param context_tokens: How many tokens the messages and the text may have together.
        :param output_tokens: How many tokens the model can write in one response.
        :param timeout_seconds: How long the model may write nothing before it is given up.
        :param dimensions: How many numbers each vector has. Required for the kind `embedding`: vectors of another length are refused.
        :param batch_texts: Of the kind `embedding`: how many texts one request may have. Default: 64.
        :param query_prefix: Of the kind `embedding`: text that the model expects before a question, such as `query: `. It is sent exactly as it is, with its spaces.
        :param passage_prefix: Of the kind `embedding`: text that the model expects before a passage, such as `passage: `. Another prefix makes other vectors: sources that name the model embed their documents again.
        :param query_input_type: Of the kind `embedding`: what the service is told in `input_type` that a question is, such as `query` (Voyage) or `search_query` (Cohere, for which it is the default).
        :param passage_input_type: Of the kind `embedding`: what the service is told in `input_type` that a passage is, such as `document` (Voyage) or `search_document` (Cohere, for which it is the default). Another type makes other vectors, like another prefix.
        :param fusion_weight: Of the kind `embedding`: the weight of its ranking in hybrid searches, beside the ranking by text, whose weight is 1. Default: 1.
        :param modalities: What the model reads. Default: only text.
        :param prices: What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens.
        """
        response: types.Model = await self._connection.call("POST", "/api/v1/models", body=given(name=name, kind=kind, provider=provider, model=model, url=url, key=key, context_tokens=context_tokens, output_tokens=output_tokens, timeout_seconds=timeout_seconds, dimensions=dimensions, batch_texts=batch_texts, query_prefix=query_prefix, passage_prefix=passage_prefix, query_input_type=query_input_type, passage_input_type=passage_input_type, fusion_weight=fusion_weight, modalities=modalities, prices=prices), options=options)
        return response

    def list(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.Model, types.ModelPage]:
        """List models.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, "/api/v1/models", given(page=page, page_size=page_size), options)

    async def get(self, model: str, options: Optional[CallOptions] = None) -> types.Model:
        """Get a model."""
        response: types.Model = await self._connection.call("GET", path("/api/v1/models/{}", model), options=options)
        return response

    async def update(
        self,
        model_id: str,
        *,
        name: Maybe[str] = OMIT,
        model: Maybe[str] = OMIT,
        url: Maybe[str] = OMIT,
        key: Maybe[Optional[str]] = OMIT,
        context_tokens: Maybe[Optional[int]] = OMIT,
        output_tokens: Maybe[Optional[int]] = OMIT,
        timeout_seconds: Maybe[Optional[int]] = OMIT,
        dimensions: Maybe[int] = OMIT,
        batch_texts: Maybe[Optional[int]] = OMIT,
        query_prefix: Maybe[Optional[str]] = OMIT,
        passage_prefix: Maybe[Optional[str]] = OMIT,
        query_input_type: Maybe[Optional[str]] = OMIT,
        passage_input_type: Maybe[Optional[str]] = OMIT,
        fusion_weight: Maybe[Optional[float]] = OMIT,
        modalities: Maybe[List[Literal["text", "image", "file"]]] = OMIT,
        prices: Maybe[Optional[types.UpdateModelRequestPrices]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Model:
        """Update a model.

        :param name: The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases.
        :param model: The model, as its provider names it.
        :param url: The base URL. A URL of another host removes the key, unless one is sent with it.
        :param key: The key of the provider; null removes it.
        :param context_tokens: How many tokens the messages and the text may have together.
        :param output_tokens: How many tokens the model can write in one response.
        :param timeout_seconds: How long the model may write nothing before it is given up.
        :param dimensions: How many numbers each vector has. Required for the kind `embedding`: vectors of another length are refused.
        :param batch_texts: Of the kind `embedding`: how many texts one request may have. Default: 64.
        :param query_prefix: Of the kind `embedding`: text that the model expects before a question, such as `query: `. It is sent exactly as it is, with its spaces.
        :param passage_prefix: Of the kind `embedding`: text that the model expects before a passage, such as `passage: `. Another prefix makes other vectors: sources that name the model embed their documents again.
        :param query_input_type: Of the kind `embedding`: what the service is told in `input_type` that a question is, such as `query` (Voyage) or `search_query` (Cohere, for which it is the default).
        :param passage_input_type: Of the kind `embedding`: what the service is told in `input_type` that a passage is, such as `document` (Voyage) or `search_document` (Cohere, for which it is the default). Another type makes other vectors, like another prefix.
        :param fusion_weight: Of the kind `embedding`: the weight of its ranking in hybrid searches, beside the ranking by text, whose weight is 1. Default: 1.
        :param modalities: What the model reads. Default: only text.
        :param prices: What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens.
        """
        response: types.Model = await self._connection.call("PATCH", path("/api/v1/models/{}", model_id), body=given(name=name, model=model, url=url, key=key, context_tokens=context_tokens, output_tokens=output_tokens, timeout_seconds=timeout_seconds, dimensions=dimensions, batch_texts=batch_texts, query_prefix=query_prefix, passage_prefix=passage_prefix, query_input_type=query_input_type, passage_input_type=passage_input_type, fusion_weight=fusion_weight, modalities=modalities, prices=prices), options=options)
        return response

    async def delete(self, model: str, options: Optional[CallOptions] = None) -> None:
        """Delete a model."""
        await self._connection.call("DELETE", path("/api/v1/models/{}", model), options=options)

    async def create_alias(
        self,
        *,
        name: str,
        models: List[str],
        options: Optional[CallOptions] = None,
    ) -> types.ModelAlias:
        """Create an alias of models.

        :param name: The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases.
        :param models: Names of models, in the order in which they are tried. Aliases do not nest.
        """
        response: types.ModelAlias = await self._connection.call("POST", "/api/v1/model_aliases", body=given(name=name, models=models), keyed=True, options=options)
        return response

    def list_aliases(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.ModelAlias, types.ModelAliasPage]:
        """List aliases of models.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, "/api/v1/model_aliases", given(page=page, page_size=page_size), options)

    async def get_alias(self, model_alias: str, options: Optional[CallOptions] = None) -> types.ModelAlias:
        """Get an alias of models."""
        response: types.ModelAlias = await self._connection.call("GET", path("/api/v1/model_aliases/{}", model_alias), options=options)
        return response

    async def update_alias(
        self,
        model_alias: str,
        *,
        name: Maybe[str] = OMIT,
        models: Maybe[List[str]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.ModelAlias:
        """Update an alias of models.

        :param name: The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases.
        :param models: Names of models, in the order in which they are tried. Aliases do not nest.
        """
        response: types.ModelAlias = await self._connection.call("PATCH", path("/api/v1/model_aliases/{}", model_alias), body=given(name=name, models=models), options=options)
        return response

    async def delete_alias(self, model_alias: str, options: Optional[CallOptions] = None) -> None:
        """Delete an alias of models."""
        await self._connection.call("DELETE", path("/api/v1/model_aliases/{}", model_alias), options=options)

    async def list_available(self, options: Optional[CallOptions] = None) -> types.ListAvailableModelsResponse:
        """List the models that requests may name."""
        response: types.ListAvailableModelsResponse = await self._connection.call("GET", "/api/v1/available_models", options=options)
        return response

    def list_calls(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        model: Maybe[str] = OMIT,
        status: Maybe[Literal["running", "succeeded", "failed", "abandoned"]] = OMIT,
        user: Maybe[str] = OMIT,
        agent: Maybe[str] = OMIT,
        automation: Maybe[str] = OMIT,
        run: Maybe[str] = OMIT,
        extraction: Maybe[str] = OMIT,
        since: Maybe[str] = OMIT,
        until: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.ModelCall, types.ModelCallPage]:
        """List calls of models.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param model: The name of the model.
        :param status: How it ended. `abandoned`: its process was killed, and what it reserved counts.
        :param user: Only calls for this user.
        :param agent: Only calls for this agent.
        :param automation: Only calls of this automation.
        :param run: Only calls of this run.
        :param extraction: Only calls of this extraction.
        :param since: At or after this time (ISO 8601).
        :param until: Before this time (ISO 8601).
        """
        return AsyncPages(self._connection, "/api/v1/model_calls", given(page=page, page_size=page_size, model=model, status=status, user=user, agent=agent, automation=automation, run=run, extraction=extraction, since=since, until=until), options)

    async def get_call(self, model_call: str, options: Optional[CallOptions] = None) -> types.ModelCall:
        """Get a call of a model."""
        response: types.ModelCall = await self._connection.call("GET", path("/api/v1/model_calls/{}", model_call), options=options)
        return response

    async def create_budget(
        self,
        *,
        subject: Literal["app", "sandbox", "user", "agent", "automation", "run"],
        period: Literal["day", "month", "total"],
        subject_id: Maybe[str] = OMIT,
        tokens: Maybe[int] = OMIT,
        cost: Maybe[int] = OMIT,
        soft_tokens: Maybe[int] = OMIT,
        soft_cost: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.ModelBudget:
        """Create a budget for models.

        :param subject: Whose calls count together. `app` counts those of sandboxes too; it and `sandbox` are set with a key of production.
        :param period: When the count starts at 0 again: each day or month (UTC), or never.
        :param subject_id: The one that the budget is for. Absent: each user, agent, run … has the budget for itself.
        :param tokens: Tokens beyond which calls are refused.
        :param cost: Money beyond which calls are refused, in millionths of a currency unit.
        :param soft_tokens: Tokens beyond which the event `model_budget.reached` is emitted.
        :param soft_cost: Money beyond which the event is emitted, in millionths of a currency unit.
        """
        response: types.ModelBudget = await self._connection.call("POST", "/api/v1/model_budgets", body=given(subject=subject, subject_id=subject_id, period=period, tokens=tokens, cost=cost, soft_tokens=soft_tokens, soft_cost=soft_cost), keyed=True, options=options)
        return response

    def list_budgets(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.ModelBudget, types.ModelBudgetPage]:
        """List budgets for models.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, "/api/v1/model_budgets", given(page=page, page_size=page_size), options)

    async def get_budget(self, model_budget: str, options: Optional[CallOptions] = None) -> types.ModelBudget:
        """Get a budget for models."""
        response: types.ModelBudget = await self._connection.call("GET", path("/api/v1/model_budgets/{}", model_budget), options=options)
        return response

    async def update_budget(
        self,
        model_budget: str,
        *,
        tokens: Maybe[Optional[int]] = OMIT,
        cost: Maybe[Optional[int]] = OMIT,
        soft_tokens: Maybe[Optional[int]] = OMIT,
        soft_cost: Maybe[Optional[int]] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.ModelBudget:
        """Update a budget for models.

        :param tokens: Tokens beyond which calls are refused. Null removes the limit.
        :param cost: Money beyond which calls are refused, in millionths of a currency unit. Null removes the limit.
        :param soft_tokens: Tokens beyond which the event `model_budget.reached` is emitted. Null removes the limit.
        :param soft_cost: Money beyond which the event is emitted, in millionths of a currency unit. Null removes the limit.
        """
        response: types.ModelBudget = await self._connection.call("PATCH", path("/api/v1/model_budgets/{}", model_budget), body=given(tokens=tokens, cost=cost, soft_tokens=soft_tokens, soft_cost=soft_cost), options=options)
        return response

    async def delete_budget(self, model_budget: str, options: Optional[CallOptions] = None) -> None:
        """Delete a budget for models."""
        await self._connection.call("DELETE", path("/api/v1/model_budgets/{}", model_budget), options=options)

    def list_budget_uses(
        self,
        model_budget: str,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.ModelBudgetUse, types.ModelBudgetUsePage]:
        """List what is used of a budget.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        """
        return AsyncPages(self._connection, path("/api/v1/model_budgets/{}/uses", model_budget), given(page=page, page_size=page_size), options)

    def usage(
        self,
        *,
        page: Maybe[int] = OMIT,
        page_size: Maybe[int] = OMIT,
        by: Maybe[Literal["sandbox", "user", "agent", "automation", "run", "model", "day"]] = OMIT,
        since: Maybe[str] = OMIT,
        until: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> AsyncPages[types.ModelUsage, types.ModelUsagePage]:
        """List what models were used for.

        :param page: Page number, from 1. Default 1.
        :param page_size: Entries per page. Default 25; more than 100 counts as 100.
        :param by: What calls are grouped by. Default `day`. With a key of production, `sandbox` counts all sandboxes.
        :param since: Calls at or after this time (ISO 8601).
        :param until: Calls before this time (ISO 8601).
        """
        return AsyncPages(self._connection, "/api/v1/usage/models", given(page=page, page_size=page_size, by=by, since=since, until=until), options)

    async def export_usage(
        self,
        *,
        by: Maybe[Literal["sandbox", "user", "agent", "automation", "run", "model", "day"]] = OMIT,
        since: Maybe[str] = OMIT,
        until: Maybe[str] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> None:
        """Export what models were used for.

        :param by: What calls are grouped by. Default `day`. With a key of production, `sandbox` counts all sandboxes.
        :param since: Calls at or after this time (ISO 8601).
        :param until: Calls before this time (ISO 8601).
        """
        await self._connection.call("GET", "/api/v1/usage/models/csv", query=given(by=by, since=since, until=until), options=options)

    async def test(self, model: str, options: Optional[CallOptions] = None) -> types.ModelTest:
        """Try a model."""
        response: types.ModelTest = await self._connection.call("POST", path("/api/v1/models/{}/test", model), keyed=True, options=options)
        return response
