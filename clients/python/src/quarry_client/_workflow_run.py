"""What the function of a workflow in code works with."""

from __future__ import annotations

import asyncio
import contextvars
import datetime
import functools
import inspect
import random
import re
import threading
import uuid
from typing import (
    Any,
    Awaitable,
    Callable,
    Dict,
    Generic,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    TypedDict,
    TypeVar,
    Union,
    overload,
)

from ._workflow_execution import Execution, Step, WorkflowError, error_of, plain
from .data import json_schema

T = TypeVar("T")
I = TypeVar("I")
P = TypeVar("P")
R = TypeVar("R")

# Seconds, or text such as `10m`, `12h` or `7d`.
Duration = Union[int, float, str, datetime.timedelta]


class StepError(Exception):
    """Why a step failed for good. Raised where the workflow called it."""

    def __init__(self, step: str, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "The step failed.")))
        self.step = step
        self.code = str(error.get("code", "failed"))


class StepTools:
    """What the function of a step gets."""

    def __init__(self, command_id: str, attempt: int, run: str, cancelled: threading.Event) -> None:
        self.command_id = command_id
        """The same for all attempts of this step: its idempotency key in other systems."""
        self.attempt = attempt
        self.run = run
        """The id of the run, which uploads of its files name as `automation_run`."""
        self.cancelled = cancelled
        """Set when the run is cancelled, the claim is lost or the worker stops. Coroutines are cancelled as well."""


class Retry(TypedDict, total=False):
    max_attempts: int
    initial_seconds: float
    factor: float


class Answer(TypedDict):
    """The answer of a person."""

    ok: bool
    """Whether `data` has `ok: true`, or no `ok` at all."""
    data: Any
    by: str
    at: str
    approval: str



class Workflow(Generic[P, R]):
    """A function and the automation whose runs it executes. Its annotations are the types of payload and result."""

    def __init__(self, name: str, body: Callable[[Run, P], Awaitable[R]]) -> None:
        self.name = name
        self.body = body


class Run:
    """A run, or a branch of it."""

    def __init__(self, execution: Execution, scope: str = "") -> None:
        self._execution = execution
        self._scope = scope
        self._counts: Dict[str, int] = {}
        self._open: Set[str] = set()

    @overload
    async def step(
        self, name: str, fn: Callable[[StepTools], Awaitable[T]], *, retry: Union[int, Retry, None] = None
    ) -> T: ...

    @overload
    async def step(self, name: str, fn: Callable[[StepTools], T], *, retry: Union[int, Retry, None] = None) -> T: ...

    async def step(self, name: str, fn: Callable[[StepTools], Any], *, retry: Union[int, Retry, None] = None) -> Any:
        """Does something once and records what it returns.

        It is executed at least once: a crash before its result is stored repeats it with the same `command_id`. A
        function runs in a thread, a coroutine in the loop. Raises StepError when the last attempt has failed.

        :param retry: Attempts in total, or also the pauses between them. An error with `retryable = False` is not tried
            again.
        """
        policy: Optional[Mapping[str, Any]] = {"max_attempts": retry} if isinstance(retry, int) else retry
        with self._named(name) as step_id:
            execution = self._execution
            step = await execution.visit(step_id, "step")
            if step is None:
                step = Step("step", "due", 0, retries=(policy or {}).get("max_attempts", 1))
                execution.steps[step_id] = step
            while True:
                if step.phase == "completed":
                    return step.output
                if step.phase == "failed":
                    raise StepError(step_id, step.error)
                if step.phase == "waiting":
                    await execution.wait(step_id)
                    continue
                if step.phase == "due":
                    first = {} if policy is None or step.attempt > 0 else {"retry": dict(policy)}
                    step.phase = "working"
                    step.attempt += 1
                    await execution.store({"type": "node_started", "node_id": step_id, "kind": "step", **first})
                await self._attempt(step_id, step, fn)

    async def _attempt(self, step_id: str, step: Step, fn: Callable[[StepTools], Any]) -> None:
        execution = self._execution
        tools = StepTools(step.command_id, step.attempt, execution.run, execution.cancelled)
        try:
            step.output = await execution.work(lambda: _result_of(fn, tools))
            step.phase = "completed"
            execution.write({"type": "node_completed", "node_id": step_id, "payload": step.output})
        except Exception as raised:
            step.error = error_of(raised)
            final = getattr(raised, "retryable", None) is False
            step.phase = "waiting" if not final and step.attempt < step.retries else "failed"
            more = {"retryable": False} if final else {}
            execution.write({"type": "node_failed", "node_id": step_id, "error": step.error, **more})

    async def all(self, branches: Mapping[str, Callable[[Run], Awaitable[Any]]]) -> Dict[str, Any]:
        """Does branches at the same time, each with a run of its own for its steps."""
        tasks = [self._start(name, fn) for name, fn in branches.items()]
        return dict(zip(branches, await asyncio.gather(*tasks)))

    async def map(
        self, items: Iterable[I], fn: Callable[[I, Run], Awaitable[T]], *, key: Callable[[I], str]
    ) -> List[T]:
        """Does the same for each item at the same time.

        :param key: Names an item. It must stay the same from run to run.
        """
        tasks = [self._start(key(item), functools.partial(fn, item)) for item in items]
        return list(await asyncio.gather(*tasks))

    def _start(self, name: str, fn: Callable[[Run], Awaitable[T]]) -> asyncio.Future[T]:
        branch = Run(self._execution, self._place(name, "/") + "/")

        async def work() -> T:
            return await fn(branch)

        return self._execution.start_task(work())

    async def sleep(self, name: str, duration: Union[Duration, datetime.datetime]) -> None:
        """Sleeps, without a process: a duration, or until a time."""
        if isinstance(duration, datetime.datetime):
            until = duration.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
            await self._wait(name, "sleep", {"until": until})
        else:
            await self._wait(name, "sleep", {"seconds": seconds_of(duration)})

    async def signal(self, name: str, *, timeout: Optional[Duration] = None) -> Any:
        """Waits for a signal and returns its payload. Raises StepError with `timeout` if it does not arrive in time."""
        return await self._wait(name, "signal", {"name": name, **_timeout_of(timeout)})

    async def approve(
        self,
        name: str,
        *,
        question: str,
        form: Union[Mapping[str, Any], type, None] = None,
        users: Optional[Sequence[str]] = None,
        teams: Optional[Sequence[str]] = None,
        roles: Optional[Sequence[str]] = None,
        org: Optional[str] = None,
        exclude_invoker: Optional[bool] = None,
        timeout: Optional[Duration] = None,
    ) -> Answer:
        """Asks people and returns the first answer. Raises StepError with `timeout` if there is none in time.

        :param form: The JSON Schema of the answer, or a class that `json_schema` takes. Without it, people answer `ok`
            and may add a `comment`.
        :param users: Ids of users who may answer; `teams` likewise. Those who have one of the `roles` in `org` may, too.
        :param exclude_invoker: The user who invoked the run may not answer.
        """
        shape = json_schema(form) if isinstance(form, type) else form
        members: Dict[str, Any] = {"question": question, "form": shape, "users": users, "teams": teams, "roles": roles}
        members.update({"org": org, "exclude_invoker": exclude_invoker}, **_timeout_of(timeout))
        given = {member: value for member, value in members.items() if value is not None}
        answer: Answer = await self._wait(name, "approve", given)
        return answer

    @overload
    async def child(self, name: str, automation: Workflow[P, R], payload: P) -> R: ...

    @overload
    async def child(self, name: str, automation: str, payload: Optional[Mapping[str, Any]] = None) -> Any: ...

    async def child(self, name: str, automation: Union[str, Workflow[Any, Any]], payload: Any = None) -> Any:
        """Starts a run of another automation and returns its result.

        :param automation: Its lookup key or id, or its workflow, whose annotations then are the types of both.
        """
        key = automation.name if isinstance(automation, Workflow) else automation
        return await self._wait(name, "child", {"automation": key, "payload": dict(payload or {})})

    async def now(self) -> datetime.datetime:
        """The time, the same whenever the run continues."""
        text = await self._value("$now", lambda: datetime.datetime.now(datetime.timezone.utc).isoformat())
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))

    async def random(self) -> float:
        """A random number from 0 to 1, the same whenever the run continues."""
        return await self._value("$random", random.random)

    async def id(self) -> str:
        """A random UUID, the same whenever the run continues."""
        return await self._value("$id", lambda: str(uuid.uuid4()))

    async def _value(self, name: str, make: Callable[[], T]) -> T:
        execution = self._execution
        step_id = self._place(name)
        step = await execution.visit(step_id, "value")
        if step is None:
            step = Step("value", "completed")
            step.output = make()
            execution.steps[step_id] = step
            execution.write(
                {"type": "node_started", "node_id": step_id, "kind": "value"},
                {"type": "node_completed", "node_id": step_id, "payload": step.output},
            )
        output: T = step.output
        return output

    async def _wait(self, name: str, kind: str, members: Mapping[str, Any]) -> Any:
        with self._named(name) as step_id:
            execution = self._execution
            step = await execution.visit(step_id, kind)
            if step is None:
                step = execution.steps[step_id] = Step(kind, "waiting")
                execution.write({"type": "node_started", "node_id": step_id, "kind": kind, **members})
            await execution.wait(step_id)
            if step.phase == "failed":
                raise StepError(step_id, step.error)
            return step.output

    def _named(self, name: str) -> _Open:
        if name in self._open:
            raise WorkflowError("duplicate_step", f'A step "{name}" is already open: use run.all or run.map.')
        return _Open(self._open, name, self._place(name))

    def _place(self, name: str, kind: str = "") -> str:
        """The id of a step or branch in the journal: its scope, its name, and which of that name it is."""
        if name == "" or re.search(r"[#/\x00-\x1f\x7f-\x9f]", name):
            raise WorkflowError("invalid_name", f'"{name}" cannot name a step.')
        count = self._counts[name + kind] = self._counts.get(name + kind, 0) + 1
        return f"{self._scope}{name}" + ("" if count == 1 else f"#{count}")


class _Open:
    """A step while it is open: no other one of its scope may have its name."""

    def __init__(self, names: Set[str], name: str, step_id: str) -> None:
        self._names = names
        self._name = name
        self._step_id = step_id

    def __enter__(self) -> str:
        self._names.add(self._name)
        return self._step_id

    def __exit__(self, *_: object) -> None:
        self._names.discard(self._name)


async def _result_of(fn: Callable[[StepTools], Any], tools: StepTools) -> Any:
    if inspect.iscoroutinefunction(fn):
        return plain(await fn(tools))
    call = functools.partial(contextvars.copy_context().run, fn, tools)
    result = await asyncio.get_running_loop().run_in_executor(None, call)
    return plain(await result if inspect.isawaitable(result) else result)


_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def seconds_of(duration: Duration) -> float:
    if isinstance(duration, datetime.timedelta):
        return duration.total_seconds()
    if not isinstance(duration, str):
        return duration
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", duration)
    if found is None:
        raise WorkflowError("invalid_duration", f'"{duration}" is not a duration such as 10m.')
    return float(found[1]) * _UNITS[found[2]]


def _timeout_of(timeout: Optional[Duration]) -> Dict[str, float]:
    return {} if timeout is None else {"timeout_seconds": seconds_of(timeout)}
