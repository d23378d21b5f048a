"""What the tests of the door to Kubernetes share: doors to the cluster of the session, straight and through faults."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from cluster import Cluster
from cluster.faults import FaultProxy
from plimsoll.kube.credentials import Access
from plimsoll.kube.door import Door

Doors = Callable[..., AbstractAsyncContextManager[Door]]


def doors(file: str) -> Doors:
    """Opened inside the test, since a door belongs to its event loop."""

    @asynccontextmanager
    async def opened(**settings: Any) -> AsyncIterator[Door]:
        async with Door(await Access.find(file=file), **settings) as door:
            yield door

    return opened


@pytest.fixture
def door(cluster: Cluster) -> Doors:
    return doors(str(cluster.kubeconfig))


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[FaultProxy]:
    with cluster.proxy() as running:
        yield running


@pytest.fixture
def through(cluster: Cluster, proxy: FaultProxy) -> Doors:
    """Through the proxy, with less patience than in earnest."""
    opened = doors(str(proxy.kubeconfig(cluster.kubeconfig)))

    def impatient(**settings: Any) -> AbstractAsyncContextManager[Door]:
        return opened(**{"seconds": 2.0, "silence_seconds": 2.0, **settings})

    return impatient
