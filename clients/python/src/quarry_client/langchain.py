"""Quarry in LangChain: a retriever and tools. Needs the extra `langchain`."""

from typing import Any, List, Optional, Sequence

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import StructuredTool

from ._sync.client import Quarry
from .tools import agent_functions, find_passages


class QuarryRetriever(BaseRetriever):
    """Finds passages; what a citation needs is in their metadata."""

    # Not `Quarry`: a model of pydantic would have to be told to accept it.
    quarry: Any
    sources: Optional[List[str]] = None
    max_results: int = 8

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> List[Any]:
        passages = find_passages(self.quarry, query, self.sources, self.max_results)
        return [Document(page_content=each.pop("content"), metadata=each) for each in passages]


def quarry_tools(quarry: Quarry, names: Sequence[str], **options: Any) -> List[Any]:
    """Tools for `bind_tools` and agents; the options are those of `agent_functions`."""
    return [StructuredTool.from_function(func=each) for each in agent_functions(quarry, names, **options)]
