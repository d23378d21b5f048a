"""The network between the host and its real nodes: a switch that is a machine itself, so that it ends with the cluster.

The host has one link to the switch, with an address that pods reach, for the API server and for names. Nothing here leads to the
internet: a pod that tries is told at once that there is no route.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.node.machine import Machine, ip
from cluster.processes import ClusterFailed, Processes

LINK: Final = "plimsoll"
"""Host's links are called so, with the network's number; one that exists is another cluster's."""
NETWORKS: Final = 32
NODES: Final = 7
"""At most, in one cluster: its 10.251.8N.0/21 has a /24 for each, and one spare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """All addresses of one cluster with real nodes; those of 32 clusters do not overlap."""

    number: int

    @property
    def host(self) -> str:
        """Of the host on its nodes' network."""
        return f"10.249.{self.number}.1"

    @property
    def services(self) -> str:
        return f"10.250.{self.number * 8}.0/21"

    @property
    def pods(self) -> str:
        return f"10.251.{self.number * 8}.0/21"

    def node(self, place: int) -> str:
        return f"10.249.{self.number}.{10 + place}"

    def pods_of(self, place: int) -> str:
        return f"10.251.{self.number * 8 + place}.0/24"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A switch, linked to the host."""

    addresses: Addresses
    switch: Machine

    @classmethod
    def start(cls, processes: Processes) -> Network:
        """Take the first free network."""
        switch = Machine.start("switch", processes)
        switch.ip("link add switch type bridge")
        switch.ip("link set switch up")
        for number in range(NETWORKS):
            if Path(f"/sys/class/net/{LINK}{number}").exists():
                continue
            try:
                ip(f"link add {LINK}{number} type veth peer name host netns {switch.pid}")
            except ClusterFailed as failure:
                if "exists" in str(failure):  # somebody was quicker
                    continue
                raise
            break
        else:
            raise ClusterFailed(f"the {NETWORKS} networks for real nodes are all taken: see `ip link`")
        addresses = Addresses(number=number)
        switch.ip("link set host master switch up")
        ip(f"address add {addresses.host}/24 dev {LINK}{number}")
        ip(f"link set {LINK}{number} up")
        return cls(addresses=addresses, switch=switch)

    def attach(self, machine: Machine, place: int) -> None:
        """Give a machine its address, and the host a way to the machine's pods."""
        at, port = self.addresses, f"port{place}"
        self.switch.ip(f"link add {port} type veth peer name eth0 netns {machine.pid}")
        self.switch.ip(f"link set {port} master switch up")
        machine.ip(f"address add {at.node(place)}/24 dev eth0")
        machine.ip("link set eth0 up")
        # There is nothing beyond; who tries is told at once, and does not wait.
        machine.ip("route add unreachable default")
        # The node's own programs reach services too; what is no service is asked for in vain.
        machine.ip(f"route add {at.services} dev eth0")
        for other in range(NODES):
            if other != place:
                machine.ip(f"route add {at.pods_of(other)} via {at.node(other)}")
        ip(f"route add {at.pods_of(place)} via {at.node(place)}")
        if place == 0:
            ip(f"route add {at.services} via {at.node(place)}")
