"""Quarry in LlamaIndex: a retriever and tools. Needs the extra `llamaindex`."""

from typing import Any, List, Optional, Sequence

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool

from ._sync.client import Quarry
from .tools import agent_functions, find_passages


class QuarryRetriever(BaseRetriever):
    """Finds passages; what a citation needs is in their metadata."""

    def __init__(self, quarry: Quarry, sources: Optional[List[str]] = None, max_results: int = 8) -> None:
        self._quarry = quarry
        self._sources = sources
        self._max_results = max_results
        super().__init__()

    def _retrieve(self, query_bundle: Any) -> List[Any]:
        passages = find_passages(self._quarry, query_bundle.query_str, self._sources, self._max_results)
        return [
            NodeWithScore(node=TextNode(id_=each["id"], text=each.pop("content"), metadata=each), score=each["score"])
            for each in passages
        ]


def quarry_tools(quarry: Quarry, names: Sequence[str], **options: Any) -> List[Any]:
    """Tools for agents; the options are those of `agent_functions`."""
    return [FunctionTool.from_defaults(fn=each) for each in agent_functions(quarry, names, **options)]
