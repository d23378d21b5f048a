"""What starts one replica of an engine: words and variables as data, never a shell line.

Secrets stay references here and are resolved by the kubelet; files are named by the path at which a pod finds them.
Which pod that is, its volumes and its probes, is left to `render`.
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
    """A setting that this version of the engine has no word for; the plan's ledger counts it all the same."""

    flag: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Which pod of a replica over several is told. The kubelet puts the pod's own values for `$(NAME)` in these words."""

    pods: int
    rank: str
    leader: str
    """The address of rank 0."""
    leads: bool
    """Whether requests reach it: rank 0, or every pod where a Service balances over them."""
    mixture: bool
    """Whether the model has experts; only then may data ranks answer requests of their own."""
    start_seconds: int
    """How long the others may take until they are there: each reads the model at its own speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCommand:
    argv: tuple[str, ...]
    """The program first. A JSON value is one word. Every word is meant as it stands, dollar signs too."""
    placed: tuple[str, ...] = ()
    """Words that follow, in which the kubelet expands the pod's rank and the leader's address."""
    before: tuple[tuple[str, ...], ...] = ()
    """Programs that must have ended well before; in their words the kubelet expands too."""
    member: Member | None = None
    """Of a group, where the words above do not say who is who."""
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, SecretKey] = field(default_factory=dict)
    port: int = PORT
    unsaid: tuple[Unsaid, ...] = ()


class Engine(Protocol):
    def __call__(
        self, spec: LLMDeploymentSpec, chosen: PlanSet, facts: EngineFacts, member: Member | None = None
    ) -> EngineCommand:
        """`member` is None where a replica is one pod."""
        ...
