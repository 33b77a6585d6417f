"""Server-Sent Events, as the HTML standard defines them."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Generic, Iterator, List, Optional, TypeVar

Data = TypeVar("Data")


@dataclass(frozen=True)
class StreamEvent(Generic[Data]):
    """One event of a stream. `data` is its JSON, `id` its position."""

    event: str
    data: Data
    id: Optional[str]


@dataclass
class RawEvent:
    event: str
    data: str
    id: Optional[str]
    retry_seconds: Optional[float]


class EventReader:
    """Takes bytes in pieces of any size, and returns the events that are complete."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._lines: List[str] = []

    def feed(self, piece: bytes) -> Iterator[RawEvent]:
        text = self._rest + self._decoder.decode(piece)
        # A line feed may follow in the next piece.
        held = text.endswith("\r")
        lines = (text[:-1] if held else text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + ("\r" if held else "")
        for line in lines:
            if line != "":
                self._lines.append(line)
                continue
            event = _event_of(self._lines)
            self._lines = []
            if event is not None:
                yield event


def _event_of(lines: List[str]) -> Optional[RawEvent]:
    found = RawEvent(event="message", data="", id=None, retry_seconds=None)
    data: List[str] = []
    for line in lines:
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            data.append(value)
        elif name == "event":
            found.event = value
        elif name == "id":
            found.id = value
        elif name == "retry" and value.isdigit():
            found.retry_seconds = int(value) / 1000
    found.data = "\n".join(data)
    return found if data or found.id is not None or found.retry_seconds is not None else None
