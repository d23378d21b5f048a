"""What vLLM's pods are told where a replica has several: who is who, where the leader is, and who answers requests.

By default ranks find one another without help (mp): every pod runs the same command, and those that answer nobody are
headless. With Ray, the leader starts a cluster that the others join, and the engine runs in the leader alone.
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
"""The engine asks Ray for the node of its own address, and waits for ever where Ray knows that node by another of its addresses."""

DataMode = Literal["internal", "hybrid", "external"]


def data_mode(spec: LLMDeploymentSpec, layout: Layout, pods: int, *, mixture: bool) -> DataMode:
    """Who balances over data ranks, as far as the engine can have it so.

    A Service can only balance over pods, each of which holds whole ranks: one is the engine's external mode, several its
    hybrid one. Dense models have neither; their ranks are better replicas.
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
    """The flags of one pod."""
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
    """What the leader runs first."""
    if member is None or spec.topology.executor != "ray":
        return ()
    return (("ray", "start", "--head", f"--port={RAY_PORT}", "--disable-usage-stats", _KNOWN_BY),)


def ray_worker(spec: LLMDeploymentSpec, member: Member | None) -> EngineCommand | None:
    """The command of a pod that only lends its devices."""
    if member is None or member.leads or spec.topology.executor != "ray":
        return None
    return EngineCommand(
        argv=("ray", "start", "--block", "--disable-usage-stats"),
        placed=(_KNOWN_BY, f"--address={member.leader}:{RAY_PORT}"),
        member=member,
    )


def unsaid_member(spec: LLMDeploymentSpec, member: Member | None) -> Member | None:
    """Ray has its own ways to know who is who, which whoever starts it cannot read."""
    return member if spec.topology.executor == "ray" else None
