"""Simulated pods with addresses of this machine, where their metrics are served as engines serve them: for an operator that asks pods."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final

from cluster.api import Object
from cluster.fleet import Fleet, fleet_of
from cluster.metrics import MetricsServer
from cluster.metrics.pages import Page
from plimsoll import names
from plimsoll.engines.command import PORT
from turns.running import Desk
from turns.traffic import Traffic

GPU: Final = "L40S-48GB"
"""That the other fleet of the cluster has none of, so that pods come here."""
NODES: Final = 4
FULL: Final = 240.0
"""Requests in flight with which as many replicas as there may be are busy, however they came to be so many."""
SCALED: Final[dict[str, Any]] = {
    "topology": {"gpuProducts": [GPU]},
    "workload": {"contextTokens": 8192},
    "engine": {"maxSequences": 64},
    "scaling": {"min": 1, "max": 4, "upWindowSeconds": 1, "downWindowSeconds": 3},
}


def fleet() -> Fleet:
    """Nodes that give their pods loopback addresses, which are others' own in each process."""
    pool = {
        "name": "near",
        "gpuProduct": GPU,
        "nodes": NODES,
        "gpusPerNode": 1,
        "cpu": "64",
        "memory": "512Gi",
    }
    made = fleet_of("near", {"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": [pool]})
    process = os.getpid()
    nodes = []
    for number, node in enumerate(made.nodes):
        addresses = f"127.{64 + process % 128}.{process // 128 % 64 * NODES + number}.0/24"
        spec = {**node.get("spec", {}), "podCIDR": addresses, "podCIDRs": [addresses]}
        nodes.append({**node, "spec": spec})
    return replace(made, nodes=tuple(nodes))


class OwnPages:
    """One page at each pod's address."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._servers: dict[str, MetricsServer] = {}
        self._status: int | None = None

    def page(self, pod: Object) -> Page:
        address = pod["status"]["podIP"]
        if address not in self._servers:
            self._servers[address] = self._stack.enter_context(MetricsServer((address, PORT)))
            self._servers[address].page().fail(self._status)
        return self._servers[address].page()

    def fail(self, status: int | None) -> None:
        """All answer with it, also those of pods that are ready only later; None: they are well again."""
        self._status = status
        for server in list(self._servers.values()):
            server.page().fail(status)


@contextmanager
def near(desk: Desk) -> Iterator[tuple[Traffic, OwnPages]]:
    """The fleet, and load on whatever is ready on it."""
    with ExitStack() as stack:
        stack.enter_context(desk.cluster.fleet(fleet()))
        pages = OwnPages(stack)
        yield stack.enter_context(Traffic(pages.page, desk.pods)), pages
