"""What connectors of both halves share."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple, TypedDict

from . import types

Upsert = types.PutKnowledgeSyncBatchRequestUpserts
Deletion = types.PutKnowledgeSyncBatchRequestDeletes

UPSERTS_MAX = 100
DELETES_MAX = 1_000


class _Found(TypedDict, total=False):
    upserts: List[Upsert]
    """New and changed documents."""
    deletes: List[Deletion]
    """Documents that are gone."""


class ConnectorBatch(_Found):
    """What a connector found, and where it continues afterwards."""

    cursor: Optional[str]
    """A text that only the connector understands."""


def parts_of(batch: ConnectorBatch) -> List[Tuple[List[Upsert], List[Deletion]]]:
    """Divides a batch as the server wants it. At least one part, so that the last one can have the cursor."""
    upserts, deletes = batch.get("upserts", []), batch.get("deletes", [])
    parts: List[Tuple[List[Upsert], List[Deletion]]] = []
    for at in range(0, len(upserts), UPSERTS_MAX):
        parts.append((upserts[at : at + UPSERTS_MAX], []))
    for at in range(0, len(deletes), DELETES_MAX):
        parts.append(([], deletes[at : at + DELETES_MAX]))
    return parts or [([], [])]


class Listing:
    """Watches a full listing for what the server cannot see."""

    def __init__(self) -> None:
        self.problems: List[str] = []
        self.ids: Dict[str, None] = {}
        self.batches = 0

    def add(self, batch: ConnectorBatch) -> None:
        self.batches += 1
        if not batch["cursor"]:
            self.problems.append(f"Batch {self.batches} has no cursor.")
        for upsert in batch.get("upserts", []):
            name = upsert["external_id"]
            if name in self.ids:
                self.problems.append(f'A full listing contains "{name}" twice.')
            self.ids[name] = None
