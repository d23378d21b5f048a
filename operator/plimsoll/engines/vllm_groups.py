"""Flags of vLLM's pods where a replica has several: which rank a pod is, where the leader is, and who answers requests.

By default (mp) every pod runs the same command with its own rank, and those that answer no requests are headless. With Ray, the leader
starts a cluster that the other pods join, and the engine runs in the leader alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.command import EngineCommand, Member
from plimsoll.planning.layouts.layout import Layout

MASTER_PORT: Final = 29501
RAY_PORT: Final = 6379
NODE_ADDRESS: Final = "VLLM_HOST_IP"
_KNOWN_BY: Final = f"--node-ip-address=$({NODE_ADDRESS})"
"""Has Ray know a node by the address that the engine asks for it by. The engine would wait for ever if Ray knew the node by another of its
addresses."""

DataMode = Literal["internal", "hybrid", "external"]


def data_mode(spec: LLMDeploymentSpec, layout: Layout, pods: int, *, mixture: bool) -> DataMode:
    """Who balances requests over data ranks: as the user asks, where the engine can do it.

    A Service can only balance over pods, so each pod must hold whole ranks: with one rank it is the engine's external mode, with several
    its hybrid mode. There is neither for dense models, whose data ranks are better run as replicas.
    """
    asked = spec.topology.data_mode
    if (
        asked in (None, "internal")
        or pods == 1
        or not mixture
        or layout.data % pods
        or spec.topology.executor == "ray"
    ):
        return "internal"
    return "external" if layout.data == pods else "hybrid"


def words(spec: LLMDeploymentSpec, mode: DataMode, member: Member) -> Iterator[tuple[str, ...]]:
    """The flags by which one pod of a group differs."""
    if spec.topology.executor == "ray":
        yield "--distributed-executor-backend", "ray"
        return
    yield "--nnodes", str(member.pods)
    yield "--node-rank", member.rank
    yield "--master-addr", member.leader
    yield "--master-port", str(MASTER_PORT)
    yield "--distributed-executor-backend", "mp"
    yield "--distributed-timeout-seconds", str(member.start_seconds)
    if mode != "internal":
        yield (f"--data-parallel-{mode}-lb",)
    elif not member.leads:
        yield ("--headless",)


def before(spec: LLMDeploymentSpec, member: Member | None) -> tuple[tuple[str, ...], ...]:
    """The programs that the leader runs before the engine."""
    if member is None or spec.topology.executor != "ray":
        return ()
    return (("ray", "start", "--head", f"--port={RAY_PORT}", "--disable-usage-stats", _KNOWN_BY),)


def ray_worker(spec: LLMDeploymentSpec, member: Member | None) -> EngineCommand | None:
    """The command of a pod that only gives its devices to a Ray cluster; None for all others."""
    if member is None or member.leads or spec.topology.executor != "ray":
        return None
    return EngineCommand(
        argv=("ray", "start", "--block", "--disable-usage-stats"),
        placed=(_KNOWN_BY, f"--address={member.leader}:{RAY_PORT}"),
        member=member,
    )


def unsaid_member(spec: LLMDeploymentSpec, member: Member | None) -> Member | None:
    """The member, where the engine's own words do not give its rank, as with Ray; else None."""
    return member if spec.topology.executor == "ray" else None
