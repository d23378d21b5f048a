"""Writes to serving pods themselves: deletes them, or takes annotations off. Everything else is decided by the objects that make the pods.

A pod that is gone already, or that was replaced by another of its name, is no error.
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
    """Deletes pods. Returns the errors of those that stay. A conflict is none: another pod has the name by now."""
    problems = await _all(door.delete(POD.path(namespace, pod.name), uid=pod.uid) for pod in pods)
    return tuple(error for error in problems if not isinstance(error, Conflict))


async def set_free(door: Door, namespace: str, pods: Iterable[PodSeen]) -> tuple[KubeError, ...]:
    """Takes off the annotations that ask autoscalers to keep a pod's node. Returns the errors of those that still have them."""
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
