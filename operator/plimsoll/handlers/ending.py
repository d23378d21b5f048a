"""How the process's concurrent tasks end.

Each part has a share of the time that a pod is given to end (terminationGracePeriodSeconds of the chart), as an API server that is away may
never answer. All shares together are shorter than the last resort, and that is shorter than the pod's time, after which the kubelet kills it
without a trace in the log.
"""

from __future__ import annotations

import asyncio
import faulthandler
from collections.abc import Coroutine, Mapping
from typing import Any, Final

TURNS_SECONDS: Final = 8.0
"""Time for running turns to finish. To cut one off is like a crash between two of its writes."""
LESSONS_SECONDS: Final = 5.0
"""Time to write what was learned last."""
ANSWERS_SECONDS: Final = 3.0
"""Time for each server to finish its answers."""
KOPF_SECONDS: Final = 5.0
LAST_RESORT_SECONDS: Final = 35.0
"""Time after which the process is ended by force."""


class LeaseLost(RuntimeError):
    """The Lease is lost, so that another process may lead now."""


async def unless(
    stop: asyncio.Event, work: Coroutine[Any, Any, None], *beside: asyncio.Task[Any] | None
) -> bool:
    """Runs the work until it is done, until `stop` is set, or until a task beside it has ended. Returns whether it was done; raises what
    it raises."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    others = [one for one in beside if one is not None]
    try:
        await asyncio.wait({task, stopped, *others}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            return True
        return False
    finally:
        await ended(task)
        await ended(stopped)


def raise_end(tasks: Mapping[str, asyncio.Task[Any]]) -> None:
    """Raises the end of a task that should have gone on. Does nothing where only `stop` has ended."""
    for name, task in tasks.items():
        if task.done() and name != "stop":
            task.result()
            raise LeaseLost("the Lease is lost") if name == "lease" else RuntimeError(f"{name} ended")


def end_by_force() -> None:
    """Makes sure that the process ends, even if a thread hangs that cannot be cancelled: then all stacks are written to the log first."""
    faulthandler.dump_traceback_later(LAST_RESORT_SECONDS, exit=True)


async def ended(task: asyncio.Task[Any] | None) -> None:
    """Cancels a task and waits for its end, whatever its result."""
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
