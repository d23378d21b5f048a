"""How what runs beside one another ends: by whom, in which order, and that nothing is waited for once the end was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any


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


async def ended(task: asyncio.Task[Any] | None) -> None:
    """Cancelled and waited for, whatever came of it."""
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
