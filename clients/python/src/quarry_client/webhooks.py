"""Checks the messages that a webhook delivers."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from typing import Any, Mapping, TypedDict, Union, cast

TOLERANCE_SECONDS = 300


class WebhookEvent(TypedDict):
    """An event: of Quarry (see `types.WebhookMessage`), or one of your own with any data."""

    id: str
    type: str
    timestamp: str
    sequence: int
    data: Any


class WebhookVerificationError(ValueError):
    """A message that does not come from the server, or that is too old."""


def verify_webhook(body: Union[bytes, str], headers: Mapping[str, str], secret: str) -> WebhookEvent:
    """Returns the event of a message whose signature is valid and at most five minutes old; otherwise raises.

    :param body: As it arrived, before any parsing.
    :param headers: Those of the request, in upper or lower case.
    """
    found = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, timestamp = found["webhook-id"], found["webhook-timestamp"]
        signatures = found["webhook-signature"]
    except KeyError as missing:
        raise WebhookVerificationError(f"The message has no header {missing.args[0]}.") from None
    # Digits alone: Python also reads other forms, such as "nan".
    if not (timestamp.isascii() and timestamp.isdigit() and abs(time.time() - int(timestamp)) <= TOLERANCE_SECONDS):
        raise WebhookVerificationError("The message was signed too long ago, or the clock is wrong.")
    content = body.encode() if isinstance(body, str) else bytes(body)
    key = _decode(secret[len("whsec_") :] if secret.startswith("whsec_") else secret)
    wanted = hmac.new(key, f"{message_id}.{timestamp}.".encode() + content, hashlib.sha256).digest()
    for each in signatures.split(" "):
        version, _, signature = each.partition(",")
        if version == "v1" and hmac.compare_digest(_decode(signature), wanted):
            return cast(WebhookEvent, json.loads(content))
    raise WebhookVerificationError("No signature of the message fits the secret.")


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
