"""One claim on a run of a workflow in code."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Set, Tuple, TypeVar, Union

from . import types
from ._async.connection import AsyncConnection
from ._async.runtime import CallOptions
from ._shared import path
from .errors import QuarryError

T = TypeVar("T")

Json = Dict[str, Any]

BATCH_ENTRIES_MAX = 200
QUIET_SECONDS = 1.0
BEAT_SECONDS_MAX = 20
# What a workflow does without waiting for the server takes a few turns of the loop: one for each task within a task.
REST_TURNS = 25
OUTPUT_BYTES_MAX = 256 * 1024
# Larger whole numbers are not the same in all languages.
INTEGER_MAX = 2**53
# The statuses by which the server says that it will never take a batch.
REFUSED = (400, 413, 422)


class WorkflowError(Exception):
    """A fault of the workflow's code itself, such as `duplicate_step`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Step:
    """A step of the journal. `phase`: working, waiting, due, completed or failed."""

    def __init__(self, kind: str, phase: str, attempt: int = 1, command_id: str = "", retries: int = 1) -> None:
        self.kind = kind
        self.phase = phase
        self.attempt = attempt
        self.command_id = command_id
        self.retries = retries
        self.output: Any = None
        self.error: Mapping[str, Any] = {}


# A claimed run: the beginning of its journal.
Work = Union[types.ClaimedWork, types.ClaimedJournal]
# How the holder of a claim reads and writes its run: "journal" or "entries", and the members of the body.
Post = Callable[[str, Json], Awaitable[Any]]


def claim_of_worker(connection: AsyncConnection, work: types.ClaimedWork, lease_seconds: int) -> Post:
    """The claim of a worker, whose key is the credential."""
    run = path("/api/v1/automation_runs/{}", work["run"]["id"])
    urls = {"entries": f"{run}/entries", "journal": f"{run}/claimed_journal"}

    async def post(name: str, body: Json) -> Any:
        sent = {"claim": work["claim"], **body}
        return await connection.call("POST", urls[name], body=sent, options=_options(lease_seconds))

    return post


def claim_of_function(connection: AsyncConnection, lease_seconds: int) -> Post:
    """The claim of a function, which is the credential of its connection."""

    async def post(name: str, body: Json) -> Any:
        url = f"/api/v1/claimed_run/{name}"
        return await connection.call("POST", url, body=body, options=_options(lease_seconds))

    return post


def _options(lease_seconds: int) -> CallOptions:
    return {"retries": 0, "timeout": lease_seconds + 30.0}


class Execution:
    """One claim on a run: replays what its journal has, executes what it has not, and writes that."""

    def __init__(self, post: Post, work: Work, lease_seconds: int) -> None:
        self._post = post
        self._work = work
        self._lease_seconds = lease_seconds
        self._sequence = work["sequence"]
        run = work["run"]
        self.run = run if isinstance(run, str) else run["id"]
        self.steps: Dict[str, Step] = {}
        self._visited: Set[str] = set()
        self._waiting: Dict[str, asyncio.Future[None]] = {}
        # Entries for the next requests, each with what awaits that it is stored.
        self._outbox: List[Tuple[Json, Optional[asyncio.Future[None]]]] = []
        self.cancelled = threading.Event()
        self._is_over = False
        self._is_sending = False
        self._is_scheduled = False
        self._quiet_turns = 0
        self._release: Optional[Json] = None
        self._working = 0
        self._tasks: Set[asyncio.Future[Any]] = set()
        self._beat: Optional[asyncio.TimerHandle] = None
        self._hearing: Optional[asyncio.Task[None]] = None
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()

    async def execute(self, body: Callable[[Any], Awaitable[Any]]) -> None:
        """Returns when the run has ended or was released."""
        payload = await self._replay()
        try:
            self.start_task(self._run(body, payload))
            self.schedule()
            await self._over
        finally:
            self._end()
            self._abort()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _replay(self) -> Any:
        payload: Any = None
        journal, cursor = self._work["journal"], self._work.get("after_cursor")
        while True:
            for entry in journal:
                if entry["type"] == "run_started":
                    payload = entry["record"].get("payload")
                else:
                    self._apply(entry)
            if cursor is None:
                return payload
            page = await self._post("journal", {"after_cursor": cursor})
            journal, cursor = page["journal"], page.get("after_cursor")

    async def _run(self, body: Callable[[Any], Awaitable[Any]], payload: Any) -> None:
        try:
            end: Json = {"type": "run_completed", "payload": plain(await body(payload))}
        except asyncio.CancelledError:
            # Unless this execution has cancelled it, the program ends: the run continues when the claim has expired.
            if not self.cancelled.is_set():
                self._leave()
            raise
        except Exception as error:
            end = {"type": "run_failed", "error": error_of(error)}
        self._finish(end)

    def start_task(self, work: Awaitable[T]) -> asyncio.Future[T]:
        """Does work that ends with the execution."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def visit(self, step_id: str, kind: str) -> Optional[Step]:
        """The step of the journal, if it has one. Ends the execution if the code does not fit it."""
        if self.cancelled.is_set():
            await self.never()
        self._quiet_turns = 0
        self._visited.add(step_id)
        step = self.steps.get(step_id)
        if step is not None and step.kind != kind:
            self._misfit({"step": step_id, "kind": step.kind}, {"step": step_id, "kind": kind})
            await self.never()
        return step

    async def never(self) -> None:
        """For a run that another worker, or this one later, continues."""
        await self._loop.create_future()

    def write(self, *entries: Json) -> None:
        """Adds entries to the next request, which is sent when the workflow's code waits."""
        if self.cancelled.is_set():
            return
        self._outbox.extend((entry, None) for entry in entries)
        self.schedule()

    async def store(self, entry: Json) -> None:
        """Adds an entry and waits until it is stored."""
        if self.cancelled.is_set():
            await self.never()
        stored: asyncio.Future[None] = self._loop.create_future()
        self._outbox.append((entry, stored))
        self.schedule()
        await stored

    async def wait(self, step_id: str) -> None:
        """Waits until the server has ended the wait of this step."""
        while self.steps[step_id].phase == "waiting":
            self._waiting[step_id] = self._loop.create_future()
            self.schedule()
            await self._waiting[step_id]
            self._waiting.pop(step_id, None)

    async def work(self, work: Callable[[], Awaitable[T]]) -> T:
        """Does the work of a step in this process."""
        if self.cancelled.is_set():
            await self.never()
        self._working += 1
        self.schedule()
        try:
            return await work()
        finally:
            self._working -= 1
            self.schedule()

    def schedule(self) -> None:
        """Sends what there is once the workflow's code has come to rest."""
        self._quiet_turns = 0
        if self._is_scheduled or self._is_sending or self._is_over:
            return
        self._is_scheduled = True
        self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._quiet_turns += 1
        if self._quiet_turns < REST_TURNS:
            self._loop.call_soon(self._turn)
            return
        self._is_scheduled = False
        asyncio.ensure_future(self._send()).add_done_callback(self._sent)

    def _sent(self, sending: asyncio.Future[None]) -> None:
        error = None if sending.cancelled() else sending.exception()
        if error is not None:
            self._fail(error)

    async def _send(self) -> None:
        if self._is_over or self._is_sending:
            return
        batch, self._outbox = self._outbox[:BATCH_ENTRIES_MAX], self._outbox[BATCH_ENTRIES_MAX:]
        entries = [entry for entry, _ in batch]
        release: Optional[Json] = self._release
        if release is None and self._rests(entries):
            release = {}
        if not entries and release is None:
            self._keep_claim()
            return
        self._is_sending = True
        self._stop_beat()
        ends = bool(entries) and str(entries[-1]["type"]).startswith("run_")
        try:
            appended = await self._append(entries, release)
        except QuarryError as error:
            if error.status not in REFUSED or not entries:
                raise
            # It will never take these entries.
            refused = {"code": error.code, "message": error.message}
            ends = True
            appended = await self._append([{"type": "run_failed", "error": refused}], None)
        self._is_sending = False
        self._take(appended)
        if appended["cancel_requested"]:
            self._cancel()
            return
        if ends or release is not None:
            self._leave()
            return
        for _, stored in batch:
            if stored is not None and not stored.done():
                stored.set_result(None)
        self.schedule()

    def _rests(self, entries: List[Json]) -> bool:
        """Whether only the server has something to do."""
        if self._working > 0 or self._outbox or not self._waiting:
            return False
        return not any(entry["type"] == "node_started" and entry["kind"] == "step" for entry in entries)

    async def _append(self, entries: List[Json], release: Optional[Json]) -> types.AppendedWork:
        """Sends one batch until there is a response: the same batch again is written once."""
        until = time.monotonic() + self._lease_seconds
        attempt = 0
        while True:
            try:
                more: Json = {} if release is None else {"release": release}
                appended: types.AppendedWork = await self._post("entries", self._batch(entries, **more))
                return appended
            except QuarryError as error:
                # The server has added entries whose response was lost.
                if error.code == "conflict" and isinstance(error.details.get("sequence"), int) and attempt < 5:
                    self._take(await self._post("entries", self._batch([])))
                else:
                    again = error.status is None or error.status == 429 or error.status >= 500
                    if not again or time.monotonic() > until:
                        raise
                    await asyncio.sleep(error.retry_after if error.retry_after is not None else min(5, 0.1 * 2**attempt))
            attempt += 1

    def _batch(self, entries: List[Json], **more: Any) -> Json:
        return {"after_sequence": self._sequence, "entries": entries, **more}

    def _take(self, appended: types.AppendedWork) -> None:
        self._sequence = appended["sequence"]
        for step_id, command_id in appended["command_ids"].items():
            if step_id in self.steps:
                self.steps[step_id].command_id = command_id
        for entry in appended["entries"]:
            self._apply(entry)

    def _keep_claim(self) -> None:
        """Renews the claim while steps take long, and hears of a cancellation meanwhile."""
        self._stop_beat()
        self._beat = self._loop.call_later(min(QUIET_SECONDS, self._lease_seconds / 4), self._start_hearing)

    def _start_hearing(self) -> None:
        self._hearing = self._loop.create_task(self._hear())

    def _stop_beat(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
        if self._hearing is not None:
            self._hearing.cancel()
        self._beat = self._hearing = None

    async def _hear(self, waits: bool = True) -> None:
        if self._is_over or self._is_sending:
            return
        seconds = max(0, min(BEAT_SECONDS_MAX, self._lease_seconds // 3))
        more: Json = {"wait_seconds": seconds} if waits else {}
        try:
            heard: types.AppendedWork = await self._post("entries", self._batch([], **more))
        except QuarryError as error:
            if error.code == "claim_lost":
                self._fail(error)
            elif waits and error.status == 429:
                await self._hear(False)
            else:
                self._keep_claim()
            return
        if self._is_sending or self._is_over:
            return
        self._hearing = None
        self._take(heard)
        if heard["cancel_requested"]:
            self._cancel()
        else:
            self.schedule()

    def _finish(self, end: Json) -> None:
        """The workflow's function has returned or raised."""
        if self.cancelled.is_set():
            return
        missed = next((step_id for step_id in self.steps if step_id not in self._visited), None)
        if missed is None:
            self.write(end)
        else:
            self._misfit({"step": missed, "kind": self.steps[missed].kind}, {"end": end["type"]})

    def _misfit(self, expected: Json, found: Json) -> None:
        """The code does not fit the journal: the run waits for another version of the code."""
        self._outbox = []
        self._hand({"workflow_changed": {"expected": expected, "found": found}})

    def stop(self) -> None:
        """The worker stops: another one, or this one later, continues the run."""
        if self.cancelled.is_set() or self._is_over:
            return
        self._outbox = [
            (entry, stored)
            for entry, stored in self._outbox
            if entry["type"] != "node_started" or entry["kind"] != "step"
        ]
        self._hand({})

    def _hand(self, release: Json) -> None:
        """Releases the run with the next request."""
        self._release = release
        self._abort()
        self.schedule()

    def _abort(self) -> None:
        self.cancelled.set()
        for task in list(self._tasks):
            task.cancel()

    def _cancel(self) -> None:
        self._abort()
        self._leave()

    def _fail(self, error: BaseException) -> None:
        self._end()
        if not self._over.done():
            self._over.set_exception(error)

    def _leave(self) -> None:
        self._end()
        if not self._over.done():
            self._over.set_result(None)

    def _end(self) -> None:
        self._is_over = True
        self._stop_beat()

    def _apply(self, entry: types.WorkflowJournalEntry) -> None:
        """Applies an entry of the journal."""
        step_id = entry.get("node_id")
        if step_id is None:
            return
        kind_of_entry, record = entry["type"], entry["record"]
        payload, metadata = record.get("payload"), record.get("metadata") or {}
        step = self.steps.get(step_id)
        if kind_of_entry == "node_started":
            kind = str(metadata.get("kind")) if step is None else step.kind
            retries = (metadata.get("retry") or {}).get("max_attempts", 1) if step is None else step.retries
            phase = "working" if kind == "step" else "waiting"
            attempt = metadata.get("attempt", 1)
            self.steps[step_id] = Step(kind, phase, attempt, entry.get("command_id", ""), retries)
        if step is None:
            return
        if kind_of_entry == "node_completed":
            step.phase, step.output = "completed", payload
        elif kind_of_entry == "node_failed":
            step.phase, step.error = "waiting" if metadata.get("will_retry") else "failed", payload or {}
        elif kind_of_entry == "timer_fired" and step.kind == "step":
            step.phase = "due"
        woken = self._waiting.get(step_id)
        if step.phase != "waiting" and woken is not None and not woken.done():
            woken.set_result(None)


def plain(value: Any) -> Any:
    """What the journal keeps of a value: the same as it is when the run continues."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(text.encode("utf-8", "surrogatepass")) > OUTPUT_BYTES_MAX:
        raise WorkflowError("output_too_large", f"The output is larger than {OUTPUT_BYTES_MAX} bytes.")
    return json.loads(text, parse_float=_number, parse_int=_integer)


def _number(text: str) -> Any:
    """As JSON has it after a way through the server: 2.0 becomes 2."""
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < INTEGER_MAX else number


def _integer(text: str) -> int:
    number = int(text)
    if abs(number) > INTEGER_MAX:
        raise WorkflowError("invalid_output", f"{number} is too large for a number in JSON: return it as text.")
    return number


def error_of(raised: BaseException) -> Dict[str, str]:
    """An error as the journal has it."""
    code, message = getattr(raised, "code", None), getattr(raised, "message", None)
    text = message if isinstance(message, str) else str(raised) or type(raised).__name__
    return {"code": code[:200] if isinstance(code, str) and code else "failed", "message": text[:10_000]}
