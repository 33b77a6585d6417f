"""The connection to the server."""

import json
import os

from quarry_client import Quarry


def connect() -> Quarry:
    """The server of `quarry dev` in this directory, or the one that the environment names."""
    url, key = os.environ.get("QUARRY_API_URL"), os.environ.get("QUARRY_API_KEY")
    if url and key:
        return Quarry(url, key=key)
    with open("data/credentials.json") as file:
        own = json.load(file)
    return Quarry(own["base_url"], key=own["secret_key"])
