"""The documents of the app."""

from pathlib import Path

from quarry_client import Quarry


def add_handbook(quarry: Quarry, directory: str) -> None:
    """Adds the documents of a directory to the source `handbook`. A text that is already there is not added again."""
    sources = quarry.knowledge.list_sources(lookup_key="handbook")
    source = next(iter(sources), None)
    if source is None:
        raise RuntimeError('There is no source "handbook": run `quarry apply app` first.')
    for path in sorted(Path(directory).glob("*.md")):
        content = {"data": path.read_text(encoding="utf-8"), "content_type": "text/markdown"}
        quarry.knowledge.add(source["id"], title=path.stem, content=content, dedupe=True)
