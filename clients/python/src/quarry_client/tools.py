"""Quarry's operations as plain functions with types and descriptions, from which a framework makes tools."""

import functools
from typing import Any, Callable, Collection, Dict, List, Optional, Sequence

from ._shared import OMIT, Maybe
from ._sync.client import Quarry
from .errors import QuarryError

# How long a tool waits for an extraction or a run.
WAIT_SECONDS = 45.0
# Room for the sentence that says how to continue.
HINT_CHARACTERS = 100
CUT = "\n[cut]"


def find_passages(
    quarry: Quarry, query: str, sources: Optional[Collection[str]], max_results: int = 8
) -> List[Dict[str, Any]]:
    """Passages, best first, each with its text and what a citation needs."""
    limited: Maybe[List[str]] = OMIT if sources is None else list(sources)
    found = quarry.knowledge.search(query=query, sources=limited, max_results=max_results)
    return [dict(each) for each in found["data"]]


def agent_functions(
    quarry: Quarry,
    names: Sequence[str],
    *,
    sources: Optional[Collection[str]] = None,
    automations: Sequence[str] = (),
    kv_prefix: str = "",
    characters_max: int = 16_000,
) -> List[Callable[..., str]]:
    """The named functions for an agent. Each returns text for a model, also when it fails.

    :param names: Of `search`, `read`, `extract`, `kv_get`, `kv_put` and `run`.
    :param sources: Limits `search` and `read`.
    :param automations: What `run` may invoke.
    :param kv_prefix: Precedes every key.
    """
    functions = [*_reading(quarry, sources, characters_max), *_acting(quarry, automations, kv_prefix)]
    by_name = {each.__name__: each for each in functions}
    return [_for_model(by_name[name], characters_max) for name in names]


def _reading(quarry: Quarry, sources: Optional[Collection[str]], characters_max: int) -> List[Callable[..., str]]:
    # The frameworks show the names, the types and the first lines of these functions to the model.
    def search(query: str) -> str:
        """Finds passages in the knowledge base, best first, each with its document, lines and bytes to cite."""
        lines = []
        for at, each in enumerate(find_passages(quarry, query, sources), 1):
            place = f"lines {each['start_line']}-{each['end_line']}, bytes {each['start_byte']}-{each['end_byte']}"
            name = ", ".join(filter(None, [each.get("title"), each["document"], place, each.get("source_url")]))
            lines.append(f"[{at}] {name}\n{each['content']}")
        return "\n\n".join(lines) or "No results."

    def read(document: str, offset: int = 0) -> str:
        """Returns a part of the text of a document (cdo_...), from a byte on. Says how to continue."""
        if sources is not None and quarry.knowledge.get_document(document)["source"] not in sources:
            return "Failed: the document belongs to a source that this tool may not read."
        limit = characters_max - HINT_CHARACTERS
        part = quarry.knowledge.read_document(document, unit="bytes", offset=offset, limit=limit)
        end = part["end_byte"]
        more = f"\n\n[There is more: call read with offset {end}.]" if end < part["total_size"] else ""
        return part["content"] + more

    def extract(url: str) -> str:
        """Reads a public web page as Markdown."""
        created = quarry.extractions.create(url=url, mode="link", destination_kind="storage")
        ended = quarry.extractions.wait_for(created["id"], seconds=WAIT_SECONDS)
        files = [each["file"] for each in ended.get("outputs", []) if "file" in each]
        if not files:
            error = ended.get("error")
            return f"{ended['id']} is {ended['state']}. {error['message'] if error else ''}"
        if files[0]["size"] == 0:
            return ""
        content = quarry.files.content(files[0]["id"], range=f"bytes=0-{characters_max - 1}")
        return content.decode(errors="ignore")

    return [search, read, extract]


def _acting(quarry: Quarry, automations: Sequence[str], kv_prefix: str) -> List[Callable[..., str]]:
    def kv_get(key: str) -> str:
        """Returns the stored value of a key."""
        return quarry.kv.get(kv_prefix + key)["value"]

    def kv_put(key: str, value: str) -> str:
        """Stores a value under a key, in place of the value that it had."""
        quarry.kv.put(kv_prefix + key, value=value)
        return f"Stored {key}."

    def run(automation: str, payload: Dict[str, Any]) -> str:
        """Runs an automation with a payload and returns its result."""
        if automation not in automations:
            return f"Failed: automation must be one of {', '.join(automations)}."
        started = quarry.automations.invoke(automation, payload=payload)
        ended = quarry.runs.wait_for(started["id"], seconds=WAIT_SECONDS)
        error = ended.get("error")
        return f"{ended['id']} is {ended['status']}. {error['message'] if error else ended.get('result', '')}"

    return [kv_get, kv_put, run]


def _for_model(function: Callable[..., str], characters_max: int) -> Callable[..., str]:
    """Turns failures into text that a model can act on, and cuts what is too long."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> str:
        try:
            text = function(*arguments, **named)
        except QuarryError as error:
            text = f"Failed: {error}"
        return text if len(text) <= characters_max else f"{text[: characters_max - len(CUT)]}{CUT}"

    return call
