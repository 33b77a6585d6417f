"""Quarry over plain HTTP: what agents need, with Python's standard library alone (3.10 or newer)."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request


class QuarryError(Exception):
    """A request that failed: the API's code, status and message, which names the fields that are wrong."""

    def __init__(self, status, code, message):
        super().__init__(f"{message.rstrip('.')} ({status} {code}).")
        self.status = status
        self.code = code


class Quarry:
    """One caller. `token` is a user's token, `key` a secret key, of which an agent should have the former."""

    def __init__(self, base_url, token=None, key=None, timeout_seconds=60):
        self.base_url = base_url.rstrip("/")
        self.timeout_seconds = timeout_seconds
        self.headers = {"Content-Type": "application/json"}
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"
        if key is not None:
            self.headers["x-api-key"] = key

    def request(self, method, path, body=None, query=None):
        """Sends one request and returns its JSON; None when the response has no body."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        url = f"{self.base_url}/api/v1{path}{'?' + urllib.parse.urlencode(given) if given else ''}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, headers=self.headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_seconds) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            raise _read_error(error) from None
        return json.loads(text) if text else None

    def search(self, query, sources=None, max_results=8):
        """Passages, best first, each with document, title, source_url, lines, bytes and score."""
        body = {"query": query, "max_results": max_results}
        if sources is not None:
            body["sources"] = list(sources)
        return self.request("POST", "/knowledge_search", body)["data"]

    def document(self, document):
        """A document without its text: source, title, metadata and size."""
        return self.request("GET", f"/knowledge_documents/{_escape(document)}")

    def read(self, document, offset=0, limit=16_000):
        """A part of a document's text, by bytes. `next_offset` is None at the end."""
        path = f"/knowledge_documents/{_escape(document)}/content"
        part = self.request("GET", path, query={"unit": "bytes", "offset": offset, "limit": limit})
        end = part["end_byte"]
        return {**part, "next_offset": end if end < part["total_size"] else None}

    def extract(self, url=None, file=None, mode="link", wait_seconds=45):
        """Reads a page, a site or a stored file as Markdown. Returns the extraction, which may still be running."""
        source = {"file": file} if url is None else {"url": url, "mode": mode}
        job = self.request("POST", "/extractions", {**source, "destination_kind": "storage"})
        return self._wait(job, f"/extractions/{job['id']}", _is_over, wait_seconds)

    def markdown(self, output, limit=16_000):
        """The beginning of the Markdown of one of an extraction's `outputs`, by its signed URL."""
        if output["file"]["size"] == 0:
            return ""
        request = urllib.request.Request(output["file"]["url"], headers={"Range": f"bytes=0-{limit - 1}"})
        with urllib.request.urlopen(request, timeout=self.timeout_seconds) as response:
            return response.read(limit).decode(errors="ignore")

    def kv_get(self, key, user=None):
        return self.request("GET", f"/kv/{_escape(key)}", query={"user": user})["value"]

    def kv_put(self, key, value, user=None):
        body = {"value": value} if user is None else {"value": value, "user": user}
        self.request("PUT", f"/kv/{_escape(key)}", body)

    def kv_delete(self, key, user=None):
        self.request("DELETE", f"/kv/{_escape(key)}", query={"user": user})

    def run(self, automation, payload=None, wait_seconds=45):
        """Invokes an automation and returns the run with its result; after the wait, as it is then."""
        body = {} if payload is None else {"payload": payload}
        run = self.request("POST", f"/automations/{_escape(automation)}/invoke", body)
        return self._wait(run, f"/automation_runs/{run['id']}", _is_over, wait_seconds)

    def _wait(self, state, path, is_over, wait_seconds):
        until = time.monotonic() + wait_seconds
        pause = 0.15
        while not is_over(state) and time.monotonic() < until:
            time.sleep(min(pause, max(0, until - time.monotonic())))
            pause = min(pause * 1.5, 2)
            state = self.request("GET", path)
        return state


def _is_over(job):
    return job.get("state", job.get("status")) not in ("pending", "running")


def _escape(text):
    return urllib.parse.quote(text, safe="")


def _read_error(error):
    try:
        found = json.loads(error.read())["error"]
        return QuarryError(error.code, found["code"], found["message"])
    except (ValueError, KeyError, TypeError):
        return QuarryError(error.code, "unknown", error.reason or "The request failed")
