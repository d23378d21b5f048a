"""What is written to pods themselves, which others make: all else that is wanted of them stands in the objects that make them.

A pod that is gone, or in whose place another came, needs nothing any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, Final

from plimsoll import names
from plimsoll.facts.serving import PodSeen
from plimsoll.kube.door import Door
from plimsoll.kube.errors import Conflict, KubeError, NotFound, is_another
from plimsoll.kube.kinds import POD

FREED: Final = dict.fromkeys((names.ANNOTATION_UNTIL_READY, *names.STAY))


async def take_away(door: Door, namespace: str, pods: Iterable[PodSeen]) -> tuple[KubeError, ...]:
    """Why those that stay could not be. Deletions meet no conflict but that of another pod of the name."""
    problems = await _all(door.delete(POD.path(namespace, pod.name), uid=pod.uid) for pod in pods)
    return tuple(error for error in problems if not isinstance(error, Conflict))


async def set_free(door: Door, namespace: str, pods: Iterable[PodSeen]) -> tuple[KubeError, ...]:
    """They no longer ask the node autoscalers to stay; why those that still do could not be told."""
    return await _all(
        door.patch(
            POD.path(namespace, pod.name),
            {"metadata": {"uid": pod.uid, "annotations": FREED}},
            manager=names.MANAGER_CHILDREN,
        )
        for pod in pods
    )


async def _all(calls: Iterable[Awaitable[Any]]) -> tuple[KubeError, ...]:
    return tuple(error for error in await asyncio.gather(*map(_tried, calls)) if error is not None)


async def _tried(call: Awaitable[Any]) -> KubeError | None:
    try:
        await call
    except KubeError as error:
        return None if isinstance(error, NotFound) or is_another(error) else error
    return None
