"""How what runs beside one another ends: by whom, in which order, and that nothing is waited for once the end was asked for.

Each part has its share of the time that a pod is given to end (terminationGracePeriodSeconds of the chart), as an API server that is
away answers nothing at all; together they end before the last resort, and that before the kubelet kills without a word.
"""

from __future__ import annotations

import asyncio
import faulthandler
from collections.abc import Coroutine, Mapping
from typing import Any, Final

TURNS_SECONDS: Final = 8.0
"""For turns that run to be finished. One that is cut off is one more crash between two writes."""
LESSONS_SECONDS: Final = 5.0
"""For what was learned last to be kept."""
ANSWERS_SECONDS: Final = 3.0
"""For each server to finish what it is asked."""
KOPF_SECONDS: Final = 5.0
LAST_RESORT_SECONDS: Final = 35.0


class LeaseLost(RuntimeError):
    """Another process acts now."""


async def unless(
    stop: asyncio.Event, work: Coroutine[Any, Any, None], *beside: asyncio.Task[Any] | None
) -> bool:
    """Whether the work was done before the end was asked for, or came by itself to one of those beside it. Raises what it raises."""
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
    """Of one that should have gone on; nothing where the end was asked for."""
    for name, task in tasks.items():
        if task.done() and name != "stop":
            task.result()
            raise LeaseLost("the Lease is lost") if name == "lease" else RuntimeError(f"{name} ended")


def end_by_force() -> None:
    """Whatever hangs until then, be it a thread that nobody can cancel: where it does is written, and the process is gone."""
    faulthandler.dump_traceback_later(LAST_RESORT_SECONDS, exit=True)


async def ended(task: asyncio.Task[Any] | None) -> None:
    """Cancelled and waited for, whatever came of it."""
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
