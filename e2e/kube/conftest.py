"""What the tests of the door to Kubernetes share: a door to the cluster of the session, and children to put through it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from cluster import Cluster
from plimsoll.kube.credentials import Access
from plimsoll.kube.door import Door

Doors = Callable[[], AbstractAsyncContextManager[Door]]


@pytest.fixture
def door(cluster: Cluster) -> Doors:
    """Opened inside the test, since a door belongs to its event loop."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Door]:
        async with Door(await Access.find(file=str(cluster.kubeconfig))) as door:
            yield door

    return opened
