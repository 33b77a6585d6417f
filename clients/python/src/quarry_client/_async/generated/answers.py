# Written by scripts/python-client.ts. Do not edit: npm run clients
from __future__ import annotations

from typing import List, Literal, Optional

from ... import types
from ..._shared import OMIT, Maybe, given
from ..connection import AsyncConnection
from ..runtime import CallOptions


class AsyncAnswersOperations:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def create(
        self,
        *,
        query: str,
        sources: Maybe[List[str]] = OMIT,
        agent: Maybe[str] = OMIT,
        model: Maybe[str] = OMIT,
        instructions: Maybe[str] = OMIT,
        unsupported: Maybe[Literal["mark", "remove", "refuse"]] = OMIT,
        max_results: Maybe[int] = OMIT,
        max_output_tokens: Maybe[int] = OMIT,
        boxes: Maybe[bool] = OMIT,
        stream: Maybe[bool] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.Answer:
        """Answer a question from sources.

        :param query: The question.
        :param sources: cso_…; only these sources. By default, everything that the caller may read.
        :param agent: agt_… or the lookup key of the agent; only its sources. Not with `sources`.
        :param model: A model or an alias of the app or of the operator. By default, the default of the operator.
        :param instructions: More for the model, such as a tone or a length.
        :param unsupported: What happens to a sentence that cites nothing, misquotes, or is not supported in the verdict of a judge: it is marked (the default), it is removed, or there is no answer.
        :param max_results: The number of passages that the model reads. Default 12.
        :param max_output_tokens: The most that the model writes. Default 1024.
        :param boxes: Whether quotes of PDFs come with the rectangles where they stand on their pages. Default false.
        :param stream: Sends events instead (text/event-stream): `delta` with text as it arrives (only with `mark`), `sentence` with each sentence after its check (with a judge, after its verdict, up to eight together), then `answer` with the whole answer, or `error`.
        """
        response: types.Answer = await self._connection.call("POST", "/api/v1/answers", body=given(query=query, sources=sources, agent=agent, model=model, instructions=instructions, unsupported=unsupported, max_results=max_results, max_output_tokens=max_output_tokens, boxes=boxes, stream=stream), keyed=True, options=options)
        return response

    async def verify(
        self,
        *,
        text: Maybe[str] = OMIT,
        quotes: Maybe[List[str]] = OMIT,
        documents: Maybe[List[str]] = OMIT,
        versions: Maybe[List[types.VerifyCitationsRequestVersions]] = OMIT,
        sources: Maybe[List[str]] = OMIT,
        agent: Maybe[str] = OMIT,
        boxes: Maybe[bool] = OMIT,
        options: Optional[CallOptions] = None,
    ) -> types.SignedCitations:
        """Check the quotes of a text.

        :param text: A text from anywhere. What stands in quotation marks, and blocks of lines with >, are its quotes: at most 50.
        :param quotes: The quotes themselves, without quotation marks. Exactly one of `text` and `quotes`.
        :param documents: cdo_…; only these documents. In `text`, [1] cites the first of them. Not with `sources` or `agent`.
        :param versions: Which versions of `documents` to read. By default, the current ones.
        :param sources: cso_…; only these sources. By default, everything that the caller may read.
        :param agent: agt_… or the lookup key of the agent; only its sources. Not with `sources`.
        :param boxes: Whether quotes of PDFs come with the rectangles where they stand on their pages. Default false.
        """
        response: types.SignedCitations = await self._connection.call("POST", "/api/v1/citations/verify", body=given(text=text, quotes=quotes, documents=documents, versions=versions, sources=sources, agent=agent, boxes=boxes), keyed=True, options=options)
        return response
