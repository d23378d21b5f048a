"""The command that starts one replica of an engine: words and variables as data, never a shell line.

Secrets stay references here, which the kubelet resolves; files are named by the path at which a pod finds them. The pod itself, with
its volumes and probes, is made in `render`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from plimsoll.api.v1alpha1.model import SecretKey
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.engines import EngineFacts
from plimsoll.planning.plan import PlanSet

PORT: Final = 8000
TEMPLATE_FILE: Final = "/etc/plimsoll/chat-template.jinja"
TLS_FOLDER: Final = "/etc/plimsoll/tls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaid:
    """A setting that this version of the engine cannot be told, although the plan's ledger counts it."""

    flag: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """The pod that a command is for, where a replica has several. The kubelet replaces `$(NAME)` in `rank` and `leader` by the pod's own
    values."""

    pods: int
    rank: str
    leader: str
    """The address of rank 0."""
    leads: bool
    """Whether it answers requests: rank 0 does, or every pod where a Service balances over them."""
    mixture: bool
    """Whether the model has experts; only then may each data rank answer requests of its own."""
    start_seconds: int
    """How long to wait for the other pods: each reads the model at its own speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCommand:
    """All that starts an engine in one pod."""

    argv: tuple[str, ...]
    """The program and its words. A JSON value is one word. Every word is taken literally, with its dollar signs."""
    placed: tuple[str, ...] = ()
    """Words after these, in which the kubelet expands the pod's rank and the leader's address."""
    before: tuple[tuple[str, ...], ...] = ()
    """Programs that must have succeeded before; the kubelet expands their words as well."""
    member: Member | None = None
    """The pod's place in its group, where the words above do not give it."""
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, SecretKey] = field(default_factory=dict)
    port: int = PORT
    unsaid: tuple[Unsaid, ...] = ()
    takes_middleware: bool = False
    """Whether this version of the engine can be told to load code of ours into its HTTP server, and the pod answers requests."""


class Engine(Protocol):
    def __call__(
        self, spec: LLMDeploymentSpec, chosen: PlanSet, facts: EngineFacts, member: Member | None = None
    ) -> EngineCommand:
        """The command of a set's pod. `member` is None where a replica is one pod."""
        ...
