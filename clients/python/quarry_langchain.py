"""Quarry in LangChain: a retriever and tools. Needs `langchain-core`."""

from typing import Any, List, Optional

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import StructuredTool

from quarry_tools import agent_functions


class QuarryRetriever(BaseRetriever):
    """Finds passages; what a citation needs is in their metadata."""

    quarry: Any
    sources: Optional[List[str]] = None
    max_results: int = 8

    def _get_relevant_documents(self, query, *, run_manager):
        passages = self.quarry.search(query, self.sources, self.max_results)
        return [Document(page_content=each.pop("content"), metadata=each) for each in passages]


def quarry_tools(quarry, names, **options):
    """Tools for `bind_tools` and agents; the options are those of `agent_functions`."""
    return [StructuredTool.from_function(func=each) for each in agent_functions(quarry, names, **options)]
