"""What is asked of one deployment at one tick: its replicas as they are, its bounds, and what is promised.

Replicas are serving instances, pods or groups of pods alike. Values only: what is observed comes from the operator or from
the simulator, what is decided from it is `scaling`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Final

from plimsoll.control.signals import Signals
from plimsoll.planning.placing.budgets import UNLIMITED, Claim, Limits
from plimsoll.values import light

NODE_LEAST_S: Final = 1800.0
"""How long a node that is being made is waited for at least."""
NODE_TIMES: Final = 3.0
"""Times as long as a node is said to take, for which it is waited where that is longer: a cloud that has none left never says so."""
ZERO_AFTER_S: Final = 900.0
"""How long nobody must have asked before the last replica goes, where the spec does not say."""


class ReplicaState(StrEnum):
    READY = "ready"
    STARTING = "starting"
    """It has its GPUs and loads."""
    UNSCHEDULABLE = "unschedulable"
    """No node has room for it, and none is being made."""
    NODE_COMING = "node coming"
    """A node is made for it, as far as anybody knows."""
    QUEUED = "queued"
    """It waits for its turn, in a queue that an admin keeps."""
    FAILED = "failed"
    """It crashes, or its image cannot be had."""
    LEAVING = "leaving"


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    id: str
    """UID of the (leader's) pod: what samples are joined on."""
    state: ReplicaState
    since: float
    """When it came into this state."""
    created: float
    scheduled: float | None = None
    """When it got its GPUs."""
    restarts: int = 0
    """Times that an engine of it has ended and was started again, and not because its node was."""
    outside: bool = False
    """It does not serve, and not because of its engine: its image is not there yet or cannot be had, its node took it away, or only a
    container beside the engine, or a readiness gate, holds it back."""
    served: bool = False
    """It has served before it came into its state, as an earlier look saw."""
    unready: float | None = None
    """Since when it has not served; None where nobody says, then since it came into its state."""
    pod: str = ""
    """Name of the (leader's) pod, for people."""

    @property
    def begun(self) -> float:
        """When it began to start up: what it waited for before, a node or its turn in a queue, is no part of that."""
        return self.scheduled or self.created

    @property
    def begins_anew(self) -> bool:
        """Its engine has ended, and loads once more."""
        return self.state is ReplicaState.STARTING and self.restarts > 0

    def has_failed(self, now: float, seconds: float) -> bool:
        """It has not served for so long, and its engine has ended meanwhile, or cannot begin. One that loads for the first time may take long."""
        if self.state is not ReplicaState.FAILED and not self.begins_anew:
            return False
        return now - (self.since if self.unready is None else self.unready) >= seconds

    def is_unplaced(self, now: float, seconds: float, node_s: float = NODE_LEAST_S) -> bool:
        """No node has taken it for so long, and where one is made for it: none has come for that long."""
        waits = self.state in (ReplicaState.NODE_COMING, ReplicaState.UNSCHEDULABLE)
        return waits and now - self.since >= self.waits_s(seconds, node_s)

    def waits_s(self, seconds: float, node_s: float) -> float:
        """How long it may go without a node: for as long as one that is made is waited for, where that is more."""
        return max(seconds, node_s) if self.state is ReplicaState.NODE_COMING else seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What one replica of a set can carry, as its plan predicts; what is learned live goes over it."""

    kv_tokens: int
    """0 where the model keeps no cache."""
    max_num_seqs: int
    concurrency: int | None = None
    """Requests in flight up to which the latency limits are predicted to hold; None without a prediction."""
    requests_per_second: float | None = None
    """At that concurrency and these lengths."""
    input_tokens: int = 1
    output_tokens: int = 1
    cached_share: float = 0.0
    """Of the prompts' tokens, which are not computed."""
    max_batched_tokens: int | None = None
    """Of the steps that are under way at once, prompts and answers together; None where the engine has no such limit."""


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSet:
    name: str
    pool: str
    capacity: Capacity
    replicas: tuple[Replica, ...] = ()
    wanted: int | None = None
    """Replicas its controller is told to run now; None: as many as there are."""
    product: str = ""
    gpus: float = 1.0
    """Of one replica, in parts where devices are shared: what budgets and pools count."""
    price_per_hour: float | None = None
    """Of one replica; only the order counts. Unknown comes after known."""
    provision_s: float | None = 0.0
    """Until a node of its pool is there, where none is free; 0 where the nodes are there, and None where all are taken and none comes."""
    refused: bool = False
    """Whether the API server lets no more of its pods be made."""
    entry: str = ""
    """Digest of the plan's entry for it; empty where that is not known. Unlike its name, it does not change with the text of its pods that
    a person may edit."""
    lost: int = 0
    """Replicas that are asked for, whose nodes do not answer, so that none is there and none comes by itself. Not among `replicas`."""

    @property
    def known_by(self) -> str:
        """The key by which what is learned of it is kept."""
        return self.entry or self.name

    @property
    def node_s(self) -> float:
        """How long a node that is made is waited for."""
        return max(NODE_LEAST_S, NODE_TIMES * (self.provision_s or 0.0))

    def count(self, *states: ReplicaState) -> int:
        return len([replica for replica in self.replicas if replica.state in states])

    @property
    def ready(self) -> int:
        return self.count(ReplicaState.READY)

    @property
    def served_at(self) -> float:
        """When the newest of those that serve came to serve; 0 where none does."""
        return max((one.since for one in self.replicas if one.state is ReplicaState.READY), default=0.0)

    @property
    def present(self) -> int:
        """Replicas that are there or on their way, those that leave aside."""
        return len([replica for replica in self.replicas if replica.state is not ReplicaState.LEAVING])

    @property
    def told(self) -> int:
        return self.present if self.wanted is None else self.wanted

    @property
    def unmade(self) -> int:
        """Replicas that are asked for and cannot be made: nobody knows whether they ever can."""
        return max(0, self.told - self.present) if self.refused else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    min: int = 1
    max: int = 1
    fixed: int | None = None
    """A number that a person or another autoscaler set: obeyed, only budgets cap it."""
    pause: str | None = None
    """Why nothing may change now, e.g. spec.paused; None: it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    ttft_p99_s: float | None = None
    itl_p99_s: float | None = None

    @classmethod
    def of_ms(cls, *, ttft_p99: int | None, itl_p99: int | None) -> Slo:
        """In milliseconds, as the spec has them."""
        return cls(
            ttft_p99_s=None if ttft_p99 is None else ttft_p99 / 1000,
            itl_p99_s=None if itl_p99 is None else itl_p99 / 1000,
        )


NO_LIMITS: Final = Slo()


@dataclass(frozen=True, slots=True, kw_only=True)
class Zero:
    """Scaling to no replica is asked for, with a wake signal that lives outside the pods."""

    after_s: float = ZERO_AFTER_S
    waiting: float | None = None
    """Requests that the gateway holds (the wake query); None: no answer, or no query."""
    silent: bool = False
    """There is a query, and no answer."""
    woken_at: float | None = None
    """When the annotation was last written; None: never."""
    idle_s: float | None = None
    """How long the gateway has counted no request; None: it cannot say, then nothing goes to zero."""
    unsaid: bool = False
    """A replica does not say whether it is asked for anything, so that somebody may be asking."""


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Replicas that do the same work; there is one role today, and everything is decided role by role."""

    sets: tuple[ServingSet, ...]
    signals: Signals
    name: str = "serve"
    bounds: Bounds = Bounds()
    exports: frozenset[str] = frozenset()
    """Figures that its engine exports, by their names in a sample. Where no replica says such a figure, it is missing and not zero."""
    asked: Mapping[str, int] | None = None
    """By set: replicas that were asked for before, and that the plan may not have yet; None where that is not known."""


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    name: str
    """namespace/name."""
    roles: tuple[Role, ...]
    slo: Slo = Slo()
    zero: Zero | None = None
    priority: int = 0
    up_window_s: float = 30.0
    down_window_s: float | None = None
    busy: str | None = None
    """Why nothing may be taken away, in a clause: a rollout or a retune is under way. Alerts hold replicas too, but by the signals that
    they fire on, so none is told here."""
    lets_go: bool = False
    """Whether that only waits for room: replicas that the load needs no longer may go then, as theirs may be what it waits for. The last may
    not, which would leave nothing to go back to."""

    @property
    def namespace(self) -> str:
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What more of the fleet one deployment may take now."""

    gpus: Mapping[str, float] = field(default_factory=dict)
    """Free devices by pool; a pool that is not named has no limit."""
    parts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What each pool is made up of: those that have a part in common share its devices. One that is not named shares none."""
    limits: Limits = UNLIMITED
    """What the namespace's budget leaves, the deployment's own replicas already taken out."""
    found: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)
    """A cache: by pool those that share its devices. They are the same in every room that is left of a first one, so it is handed on."""

    def after(self, sets: Iterable[ServingSet], replicas: Mapping[str, int]) -> Room:
        """What is left once each set has so many replicas. Where pools share devices, nobody knows from which of them a device is taken, so it
        counts as gone from each."""
        grown = [(each, more) for each in sets if (more := replicas[each.name] - each.told) > 0]
        if not grown:
            return self
        free, limits = dict(self.gpus), self.limits
        for each, more in grown:
            if limits is not UNLIMITED:
                limits = limits.less(claim_of(each), more)
            for pool in self._sharing(each.pool):
                free[pool] -= more * each.gpus
        return Room(gpus=free, parts=self.parts, limits=limits, found=self.found)

    def _sharing(self, pool: str) -> tuple[str, ...]:
        """Pools that have less when devices of this one are taken, itself among them where it has a limit."""
        if (known := self.found.get(pool)) is None:
            mine = self.parts.get(pool, frozenset())
            known = self.found[pool] = tuple(
                other
                for other in self.gpus
                if other == pool or not mine.isdisjoint(self.parts.get(other, frozenset()))
            )
        return known


def claim_of(each: ServingSet) -> Claim:
    """What one replica of a set takes of a budget."""
    return _claim(each.product, each.gpus, each.price_per_hour)


@lru_cache(1024)
def _claim(product: str, gpus: float, price: float | None) -> Claim:
    """Fractions are dear, and a fleet has few kinds of replicas."""
    return Claim(
        product=product,
        gpus=Fraction(gpus).limit_denominator(1000),
        price=None if price is None else Fraction(price).limit_denominator(10000),
    )
