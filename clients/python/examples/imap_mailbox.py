"""A connector for a mailbox (IMAP). Each message becomes a document; a deleted message deletes it.

The cursor is the set of messages that were already sent.
"""

import base64
import imaplib
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Set, Tuple

from quarry_client import Connector, ConnectorBatch

MESSAGES_PER_BATCH = 20
TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Mailbox:
    host: str
    user: str
    password: str
    port: int = 993
    folder: str = "INBOX"
    tls: bool = True
    """Only for servers on the same machine, False."""


def mailbox(box: Mailbox) -> Connector:
    return Connector(lambda cursor: _read(box, cursor, False), lambda cursor: _read(box, cursor, True))


def _read(box: Mailbox, cursor: Optional[str], deletes: bool) -> Iterator[ConnectorBatch]:
    """The messages that the cursor does not name, and if wanted, the deletion of those that it names and are gone."""
    with _open(box) as server:
        server.select(box.folder, readonly=True)
        validity = server.response("UIDVALIDITY")[1][0].decode()
        before, sent = _read_cursor(cursor)
        # The server has numbered its messages again, so the old numbers mean nothing.
        if before is not None and before != validity:
            raise ValueError("The mailbox was rebuilt. Run a full sync.")
        current = sorted(int(uid) for uid in server.uid("SEARCH", "ALL")[1][0].split())
        if deletes:
            gone = sorted(sent.difference(current))
            sent.difference_update(gone)
            if gone:
                names = [f"{validity}/{uid}" for uid in gone]
                yield {
                    "deletes": [{"external_id": name} for name in names],
                    "cursor": _write_cursor(validity, sent),
                }
        unsent = [uid for uid in current if uid not in sent]
        for at in range(0, len(unsent), MESSAGES_PER_BATCH):
            uids = unsent[at : at + MESSAGES_PER_BATCH]
            messages = _fetch(server, uids)
            sent.update(uids)
            yield {
                "upserts": [
                    {
                        "external_id": f"{validity}/{uid}",
                        "content": {
                            "data": base64.b64encode(message).decode(),
                            "data_encoding": "base64",
                            "content_type": "message/rfc822",
                        },
                    }
                    for uid, message in messages.items()
                ],
                "cursor": _write_cursor(validity, sent),
            }


@contextmanager
def _open(box: Mailbox) -> Iterator[imaplib.IMAP4]:
    kind = imaplib.IMAP4_SSL if box.tls else imaplib.IMAP4
    server = kind(box.host, box.port, timeout=TIMEOUT_SECONDS)
    try:
        server.login(box.user, box.password)
        yield server
    finally:
        server.shutdown()


def _fetch(server: imaplib.IMAP4, uids: List[int]) -> Dict[int, bytes]:
    """The bytes of these messages, without marking them as read."""
    found: Dict[int, bytes] = {}
    for part in server.uid("FETCH", ",".join(map(str, uids)), "(UID BODY.PEEK[])")[1]:
        if isinstance(part, tuple):
            uid = re.search(rb"UID (\d+)", part[0])
            if uid is not None:
                found[int(uid[1])] = part[1]
    return found


def _write_cursor(validity: str, sent: Set[int]) -> str:
    """`VALIDITY 1:40,42`: the messages that were sent."""
    ranges: List[List[int]] = []
    for uid in sorted(sent):
        if ranges and ranges[-1][1] == uid - 1:
            ranges[-1][1] = uid
        else:
            ranges.append([uid, uid])
    return f"{validity} " + ",".join(f"{first}:{last}" if first < last else f"{first}" for first, last in ranges)


def _read_cursor(cursor: Optional[str]) -> Tuple[Optional[str], Set[int]]:
    if cursor is None:
        return None, set()
    validity, ranges = cursor.split(" ")
    sent: Set[int] = set()
    for each in filter(None, ranges.split(",")):
        first, _, last = each.partition(":")
        sent.update(range(int(first), int(last or first) + 1))
    return validity, sent
