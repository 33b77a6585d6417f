"""Workflows in code: functions of yours that a worker executes step by step, over the journal of a run.

After a crash, a run continues behind the last step that ended. The function is executed again from its beginning
whenever its run continues, so everything that has an effect, takes time or differs from run to run belongs in a step.
"""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, Dict, List, Optional, Sequence, Set

from . import types
from ._async.client import AsyncQuarry
from ._shared import path
from ._workflow_execution import Execution, WorkflowError, claim_of_worker
from ._workflow_run import Answer, P, R, Retry, Run, StepError, StepTools, Workflow
from .errors import QuarryError

__all__ = ["Answer", "Retry", "Run", "StepError", "StepTools", "Worker", "Workflow", "WorkflowError", "workflow"]

_CLAIM_SECONDS = 20
_PAUSE_SECONDS_MAX = 15.0


def workflow(name: str) -> Callable[[Callable[[Run, P], Awaitable[R]]], Workflow[P, R]]:
    """Makes a workflow of a coroutine function that takes a `Run` and the payload.

    The annotation of the payload, such as a TypedDict, and that of the result are checked where another workflow names
    this one in `run.child`.

    :param name: The lookup key or id of the automation.
    """
    return lambda body: Workflow(name, body)


class Worker:
    """Executes the runs of workflows, as `async with Worker(…):` or between `start` and `stop`.

    :param code_version: The version of your code. A run that one version does not fit waits for another.
    :param concurrency: Runs that are executed at the same time.
    :param lease_seconds: After a crash, another worker continues a run this much later.
    :param on_error: Gets what could not be reported to the server, such as a lost connection. By default it is ignored
        and tried again.
    """

    def __init__(
        self,
        quarry: AsyncQuarry,
        workflows: Sequence[Workflow[Any, Any]],
        *,
        code_version: str = "1",
        concurrency: int = 10,
        lease_seconds: int = 30,
        on_error: Optional[Callable[[BaseException], object]] = None,
    ) -> None:
        self._connection = quarry.connection
        self._workflows = list(workflows)
        # The workflow of each automation that has been seen, by the automation's id.
        self._by_id: Dict[str, Workflow[Any, Any]] = {}
        self._code_version = code_version
        self._concurrency = concurrency
        self._lease_seconds = lease_seconds
        self._on_error = on_error
        self._executions: Set[Execution] = set()
        self._active: Set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._claiming: Optional[asyncio.Future[Any]] = None
        self._loop: Optional[asyncio.Task[None]] = None

    async def __aenter__(self) -> Worker:
        self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _begin(self) -> asyncio.Task[None]:
        if self._loop is None:
            self._loop = asyncio.get_running_loop().create_task(self._work())
        return self._loop

    async def start(self) -> None:
        """Executes runs until `stop` is called."""
        await self._begin()

    async def stop(self) -> None:
        """Claims no more runs, cancels the steps in progress, and hands their runs back. Returns when that is done."""
        self._is_stopping = True
        if self._claiming is not None:
            self._claiming.cancel()
        for execution in list(self._executions):
            execution.stop()
        if self._loop is not None:
            await self._loop

    async def _work(self) -> None:
        failures = 0
        while not self._is_stopping:
            if len(self._active) >= self._concurrency:
                await asyncio.wait(self._active, return_when=asyncio.FIRST_COMPLETED)
                continue
            try:
                claimed = await self._interruptible(self._claim())
                failures = 0
            except QuarryError as error:
                self._report(error)
                pause = min(_PAUSE_SECONDS_MAX, 0.25 * 2**failures) if error.retry_after is None else error.retry_after
                failures += 1
                await self._interruptible(asyncio.sleep(pause))
                continue
            if claimed is not None:
                task = asyncio.get_running_loop().create_task(self._execute(claimed))
                self._active.add(task)
                task.add_done_callback(self._active.discard)
        if self._active:
            await asyncio.wait(self._active)

    async def _interruptible(self, work: Awaitable[Any]) -> Any:
        """Waits, until `stop` is called; then the result is None."""
        self._claiming = asyncio.ensure_future(work)
        await asyncio.wait([self._claiming])
        done, self._claiming = self._claiming, None
        return None if done is None or done.cancelled() else done.result()

    async def _claim(self) -> Optional[types.ClaimedWork]:
        claimed: Optional[types.ClaimedWork] = await self._connection.call(
            "POST",
            "/api/v1/automation_work/claim",
            body={
                "automations": [one.name for one in self._workflows],
                "code_version": self._code_version,
                "lease_seconds": self._lease_seconds,
                "wait_seconds": _CLAIM_SECONDS,
            },
            options={"retries": 0, "timeout": _CLAIM_SECONDS + 30.0},
        )
        return claimed

    async def _execute(self, work: types.ClaimedWork) -> None:
        try:
            found = await self._workflow_of(work["run"]["automation"])
            if found is None:
                return
            post = claim_of_worker(self._connection, work, self._lease_seconds)
            execution = Execution(post, work, self._lease_seconds)
            self._executions.add(execution)
            try:
                if self._is_stopping:
                    execution.stop()
                body = found.body
                await execution.execute(lambda payload: body(Run(execution), payload))
            finally:
                self._executions.discard(execution)
        except Exception as error:
            # The run is continued when the claim has expired.
            self._report(error)

    async def _workflow_of(self, automation: str) -> Optional[Workflow[Any, Any]]:
        missing: List[Workflow[Any, Any]] = [] if automation in self._by_id else self._workflows
        for one in missing:
            found = await self._connection.call("GET", path("/api/v1/automations/{}", one.name))
            self._by_id[found["id"]] = one
        return self._by_id.get(automation)

    def _report(self, error: BaseException) -> None:
        if self._on_error is not None:
            self._on_error(error)
