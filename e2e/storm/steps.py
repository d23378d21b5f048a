"""What users, nodes and outages do, drawn by a seed: a story is data, so that it can be printed, shortened and played again.

Each step says the whole of what it does and nothing of what came before, so any of them can be left out of a story and the
others still mean the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from turns.crashes import DIES, LARGE, WIDE

Spec = dict[str, Any]

SMALL: Final = {"source": "hf://Qwen/Qwen3-8B"}
TINY: Final = {"source": "hf://Qwen/Qwen3-0.6B"}
H100: Final = {"gpuProducts": ["H100-SXM-80GB"]}
KINDS: Final[Mapping[str, Spec]] = {
    "one": {"model": SMALL, "topology": H100},
    "pair": {"model": SMALL, "topology": {**H100, "tensor": 2}},
    "group": {"model": LARGE, "topology": WIDE},
    "slice": {"model": TINY, "topology": {"gpuProducts": ["A100-SXM-80GB"]}},
    "claim": {"model": SMALL, "topology": {"gpuProducts": ["L40S-48GB"]}},
    "cores": {"model": TINY, "topology": {"cpu": {"cores": 8, "memory": "32Gi"}}},
    "adapted": {"model": SMALL, "topology": H100, "adapters": {"items": [{"name": "sql", "source": "hf://acme/sql"}]}},
    "scaled": {"model": SMALL, "topology": H100, "scaling": {"min": 2, "max": 4}},
    "read": {
        "model": {"source": "hf://acme/mine", "tokenSecret": {"name": "hub"}},
        "topology": H100,
        "workload": {"contextTokens": 8192},
    },
}  # fmt: skip
"""Of deployments, by the name that they have: one a kind, so that a story is read without a table."""

SLOW: Final = {"e2e.plimsoll.dev/starts-after": "3s"}
UNPULLED: Final = {"e2e.plimsoll.dev/pull-error": "not found"}
EDITS: Final[Mapping[str, tuple[Any, ...]]] = {
    "replicas": (None, 0, 1, 2, 3),
    "workload": (None, {"contextTokens": 4096}, {"contextTokens": 8192}),
    "podAnnotations": (None, {"example.com/note": "a"}, SLOW, DIES, UNPULLED),
    "podLabels": (None, {"team": "blue"}),
    "rollout": (
        None,
        {"strategy": "surge"},
        {"strategy": "replace"},
        {"strategy": "surge", "maxSurge": 2},
        {"hold": True},
        {"rollback": "manual"},
        {"canary": {"percents": [50], "holdSeconds": 2}},
    ),
    "scaling": (None, {"min": 1}, {"min": 2, "max": 3}),
    "engine": (None, {"maxSequences": 32}, {"maxSequences": 64}),
    "paused": (None, True),
    "slo": (None, {"ttftP99Ms": 2000}),
    "scheduling": (None, {"schedulerName": "default-scheduler"}),
}
"""Values that are valid of every kind; None takes the field away."""
WRONG: Final[Mapping[str, Spec]] = {
    "one": {"topology": {**H100, "tensor": 3}},
    "pair": {"topology": {**H100, "tensor": 3}},
    "scaled": {"engine": {"version": "0.11.0"}},
    "cores": {"topology": {"cpu": {"cores": 8, "memory": "1Gi"}}},
    "slice": {"topology": {"gpuProducts": ["Z9000-SXM-1TB"]}},
}
"""What is refused by a condition."""
CHILDREN: Final = (
    "deployments", "statefulsets", "services", "configmaps", "serviceaccounts", "poddisruptionbudgets", "controllerrevisions",
)  # fmt: skip
BREAKS: Final = ("delete", "unlabel", "disown", "scale", "spoil")
NODE_ACTS: Final = (
    "cordon", "cordon", "uncordon", "uncordon", "taint", "untaint", "unlabel", "relabel", "delete", "register", "drain", "drain",
)  # fmt: skip
FAULTS: Final = ("slow", "errors", "lost-answers", "lost-answers", "cut", "expire", "away")
CONFIGS: Final[tuple[Mapping[str, Any], ...]] = (
    {},
    {"registry": {"mirror": "mirror.example.com"}},
    {"defaults": [{"namespace": "*", "spec": {"podLabels": {"by": "admin"}}}]},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    act: str
    about: str = ""
    """The deployment, or the node's number."""
    value: Any = None
    wait: float = 0.0
    """Seconds after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    seed: int
    bursts: tuple[tuple[Step, ...], ...]
    """After each it is waited until nothing moves, and judged."""
    tight: bool = False
    """Whether the fleet is too small for all that is asked for."""
    leased: bool = False
    """Whether operators take a Lease, so that a second one may be there."""

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Story:
        data = json.loads(text)
        bursts = tuple(tuple(Step(**one) for one in burst) for burst in data.pop("bursts"))
        return cls(**data, bursts=bursts)

    @property
    def steps(self) -> int:
        return sum(map(len, self.bursts))


@dataclass(slots=True)
class _Drawing:
    """What is thought to be there while a story is drawn; whether it is so does not matter."""

    chance: random.Random
    kinds: tuple[str, ...]
    leased: bool
    specs: dict[str, Spec] = field(default_factory=dict)

    def step(self) -> Step:
        acts: tuple[tuple[int, Callable[[], Step]], ...] = (
            (40, self._apply),
            (6, self._scale),
            (5, self._delete),
            (5, self._remake),
            (8, self._pods),
            (12, self._child),
            (12, self._node),
            (3, self._quota),
            (3, self._foreign),
            (5, self._operator),
            (7, self._fault),
            (2, self._replan),
        )
        chosen = self.chance.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        return chosen()

    def made(self, act: str, about: str = "", value: Any = None) -> Step:
        waits = (0.0, 0.0, 0.05, 0.3, 1.0, 3.0, 12.0)
        return Step(act=act, about=about, value=value, wait=self.chance.choice(waits))

    def _name(self) -> str:
        return self.chance.choice(self.kinds)

    def new(self, name: str) -> Spec:
        spec = deepcopy(dict(KINDS[name]))
        if self.chance.random() < 0.4:
            spec["replicas"] = self.chance.randint(1, 3)
        return spec

    def _apply(self) -> Step:
        name = self._name()
        spec = deepcopy(self.specs[name]) if name in self.specs else self.new(name)
        if name in self.specs:
            for _ in range(self.chance.choice((1, 1, 1, 2))):
                self._edit(name, spec)
        self.specs[name] = spec
        return self.made("apply", name, deepcopy(spec))

    def _edit(self, name: str, spec: Spec) -> None:
        if name in WRONG and self.chance.random() < 0.08:
            spec |= deepcopy(WRONG[name])
            return
        for key in WRONG.get(name, ()):  # so that a mistake is mended by the next edit
            spec.pop(key, None)
            if key in KINDS[name]:
                spec[key] = deepcopy(KINDS[name][key])
        key = self.chance.choice(tuple(EDITS))
        value = self.chance.choice(EDITS[key])
        if value is None:
            spec.pop(key, None)
            if key in KINDS[name]:
                spec[key] = deepcopy(KINDS[name][key])
        else:
            spec[key] = deepcopy(value)

    def _scale(self) -> Step:
        return self.made("scale", self._name(), self.chance.randint(0, 3))

    def _delete(self) -> Step:
        name = self._name()
        self.specs.pop(name, None)
        return self.made(
            "delete", name, self.chance.choice(("Background", "Background", "Foreground", "Orphan"))
        )

    def _remake(self) -> Step:
        name = self._name()
        self.specs[name] = spec = self.new(name)
        policy = self.chance.choice(("Background", "Background", "Foreground", "Orphan"))
        return self.made("remake", name, {"policy": policy, "spec": deepcopy(spec)})

    def _pods(self) -> Step:
        return self.made("pods", self._name(), self.chance.choice(("one", "one", "all", "force", "evict")))

    def _child(self) -> Step:
        value = {"kind": self.chance.choice(CHILDREN), "how": self.chance.choice(BREAKS)}
        return self.made("child", self._name(), value)

    def _node(self) -> Step:
        return self.made("node", str(self.chance.randrange(64)), self.chance.choice(NODE_ACTS))

    def _quota(self) -> Step:
        return self.made("quota", value=self.chance.choice((None, 0, 2, 4)))

    def _foreign(self) -> Step:
        return self.made("foreign", self._name(), self.chance.choice(("v1/services", "v1/configmaps", None)))

    def _operator(self) -> Step:
        acts = ["kill", "kill", "stop", "config"] + (["second"] * 2 if self.leased else [])
        act = self.chance.choice(acts)
        return self.made("operator", act, self.chance.choice(CONFIGS) if act == "config" else None)

    def _fault(self) -> Step:
        return self.made("fault", self.chance.choice(FAULTS), self.chance.randrange(1000))

    def _replan(self) -> Step:
        return self.made("replan", self._name(), str(self.chance.randrange(1000)))


def draw(seed: int, *, bursts: int = 4, length: int = 6) -> Story:
    chance = random.Random(seed)
    tight, leased = chance.random() < 0.3, chance.random() < 0.2
    kinds = tuple(chance.sample(tuple(KINDS), chance.randint(2, 4)))
    drawing = _Drawing(chance, kinds, leased)
    first = []
    for name in kinds:
        drawing.specs[name] = drawing.new(name)
        first.append(drawing.made("apply", name, deepcopy(drawing.specs[name])))
    rest = [tuple(drawing.step() for _ in range(chance.randint(1, length))) for _ in range(bursts)]
    return Story(seed=seed, bursts=(tuple(first), *rest), tight=tight, leased=leased)
