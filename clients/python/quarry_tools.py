"""Quarry's operations as plain functions with types and descriptions, from which a framework makes tools."""

import functools
import urllib.error

from quarry import QuarryError


def agent_functions(quarry, names, sources=None, automations=(), kv_prefix="", characters_max=16_000):
    """The named functions for an agent. Each returns text for a model, also when it fails.

    sources: limits search and read. automations: what run may invoke. kv_prefix: precedes every key.
    """

    def search(query: str) -> str:
        """Finds passages in the knowledge base, best first, each with its document, lines and bytes to cite."""
        lines = []
        for at, each in enumerate(quarry.search(query, sources), 1):
            place = f"lines {each['start_line']}-{each['end_line']}, bytes {each['start_byte']}-{each['end_byte']}"
            name = ", ".join(filter(None, [each.get("title"), each["document"], place, each.get("source_url")]))
            lines.append(f"[{at}] {name}\n{each['content']}")
        return "\n\n".join(lines) or "No results."

    def read(document: str, offset: int = 0) -> str:
        """Returns a part of the text of a document (cdo_...), from a byte on. Says how to continue."""
        if sources is not None:
            if quarry.document(document)["source"] not in sources:
                return "Failed: the document belongs to a source that this tool may not read."
        part = quarry.read(document, offset, characters_max - 100)
        following = part["next_offset"]
        return part["content"] + (f"\n\n[There is more: call read with offset {following}.]" if following else "")

    def extract(url: str) -> str:
        """Reads a public web page as Markdown."""
        job = quarry.extract(url)
        texts = [each for each in job.get("outputs", []) if "file" in each]
        if texts:
            return quarry.markdown(texts[0], characters_max)
        return f"{job['id']} is {job['state']}. {job.get('error', {}).get('message', '')}"

    def kv_get(key: str) -> str:
        """Returns the stored value of a key."""
        return quarry.kv_get(kv_prefix + key)

    def kv_put(key: str, value: str) -> str:
        """Stores a value under a key, in place of the value that it had."""
        quarry.kv_put(kv_prefix + key, value)
        return f"Stored {key}."

    def run(automation: str, payload: dict) -> str:
        """Runs an automation with a payload and returns its result."""
        if automation not in automations:
            return f"Failed: automation must be one of {', '.join(automations)}."
        ended = quarry.run(automation, payload)
        error = ended.get("error")
        return f"{ended['id']} is {ended['status']}. {ended.get('result', '') if error is None else error['message']}"

    functions = {each.__name__: each for each in (search, read, extract, kv_get, kv_put, run)}
    return [_for_model(functions[name], characters_max) for name in names]


def _for_model(function, characters_max):
    """Turns failures into text that a model can act on, and cuts what is too long."""

    @functools.wraps(function)
    def call(*arguments, **named):
        try:
            text = function(*arguments, **named)
        except QuarryError as error:
            text = f"Failed: {error}"
        except (urllib.error.URLError, TimeoutError):
            text = "Failed: the server cannot be reached. Call again later."
        return text if len(text) <= characters_max else f"{text[: characters_max - 6]}\n[cut]"

    return call
