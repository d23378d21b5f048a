"""Resources and sets by the thousand, over all abilities; the same ones in every run."""

import random
from collections.abc import Iterator
from typing import Any, get_args

from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.model import ModelSpec
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engines import EngineFacts
from plimsoll.planning.ask.guesses import head_in_stages
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.plan import PlanSet
from plimsoll.planning.settings import LoraSlots, RopeScaling, Speculation
from tests.render.building import resource
from tests.render.cases import entry

DENSE, MIXTURE = "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B"
LAYOUTS = (
    (1, 1, Layout()),
    (1, 2, Layout(tensor=2)),
    (1, 8, Layout(tensor=4, pipeline=2)),
    (2, 4, Layout(tensor=4, pipeline=2)),
    (4, 2, Layout(tensor=2, pipeline=4)),
    (2, 4, Layout(tensor=8)),
)
RANKED = (
    (1, 8, Layout(data=8, expert_parallel=True)),
    (2, 4, Layout(data=8, expert_parallel=True)),
    (2, 1, Layout(data=2, expert_parallel=True)),
    (2, 4, Layout(tensor=2, data=4, expert_parallel=True)),
    (1, 4, Layout(tensor=4, expert_parallel=True)),
    (1, 8, Layout(tensor=8, decode_context=2)),
)
ALONE: tuple[dict[str, Any], ...] = (
    {"vendor": "amd", "gpu": "MI300X", "resource": "amd.com/gpu"},
    {"gpu": "H100-SXM-80GB 3g.40gb", "resource": "nvidia.com/mig-3g.40gb", "partition": "3g.40gb"},
    {"vendor": "cpu", "gpu": "CPU-AMX", "resource": "cpu", "kv_cache_bytes": 4 * 2**30},
)
"""Hardware of another kind, on which a replica has one device."""
LOAD_FORMATS = tuple(
    word
    for word in get_args(get_args(ModelSpec.model_fields["load_format"].annotation)[0])
    if isinstance(word, str)
)
ROPES = (
    RopeScaling(kind="yarn", factor="4.0", original=32768, theta=1e6, positions=131_072),
    RopeScaling(kind="dynamic", factor="2.0", theta=1e6),
    RopeScaling(kind="linear", factor="4.0", nested=True),
)
VOLUMES: tuple[dict[str, Any], ...] = (
    {"claim": {"name": "c"}}, {"claimTemplate": {}}, {"emptyDir": {}}, {"image": {"reference": "registry.example/weights:1"}},
)  # fmt: skip
SOURCES = (
    "hf://{0}", "{0}", "modelscope://{0}", "s3://bucket/{0}", "pvc://claim/{0}", "oci://registry.example/{0}:1", "/opt/{0}",
)  # fmt: skip


def generated(count: int, facts: EngineFacts, seed: int = 7) -> Iterator[tuple[LLMDeployment, PlanSet, bool]]:
    """Resources with a set each, and whether its model has experts."""
    draw = random.Random(seed)
    made = 0
    while made < count:
        mixture = draw.random() < 0.35
        pods, devices, layout = draw.choice(RANKED if mixture else LAYOUTS)
        shape: dict[str, Any] = {"pods": pods, "devices": devices, "layout": layout}
        if layout == Layout() and draw.random() < 0.5:
            shape |= draw.choice(ALONE)
        spec = _spec(draw, facts, mixture)
        if shape.get("vendor") == "cpu":
            spec["topology"] = spec.get("topology", {}) | {"cpu": {}}
        asked, chosen = resource(**spec), _entry(draw, spec, **shape)
        if layout.pipeline > 1 and not head_in_stages(asked.spec, facts):
            continue  # the planner draws no such layout
        made += 1
        yield asked, chosen, mixture


def _sometimes(draw: random.Random, share: float, value: Any) -> Any:
    return value if draw.random() < share else None


def _values(facts: EngineFacts, flag: str) -> tuple[str, ...]:
    return facts.flags[flag].values or facts.flags[flag].choices


def _spec(draw: random.Random, facts: EngineFacts, mixture: bool) -> dict[str, Any]:
    source = draw.choice(SOURCES)
    hub = source.startswith(("hf://", "{0}", "pvc", "/"))
    asked = {
        "model": {
            "source": source.format(MIXTURE if mixture else DENSE),
            "servedNames": _sometimes(draw, 0.3, ["chat", "$(HOME)/x"][: draw.randint(1, 2)]),
            "revision": _sometimes(draw, 0.2, "main"),
            "tokenizer": _sometimes(draw, 0.1, "hf://Qwen/Qwen3-8B") if hub else None,
            "tokenSecret": _sometimes(draw, 0.2, {"name": "hub"}),
            "trustRemoteCode": _sometimes(draw, 0.1, True),
            "loadFormat": _sometimes(draw, 0.3, draw.choice(LOAD_FORMATS)),
        },
        "engine": {
            "attentionBackend": _sometimes(draw, 0.2, draw.choice(_values(facts, "--attention-backend"))),
            "schedulingPolicy": _sometimes(draw, 0.2, draw.choice(["fcfs", "priority"])),
            "sleepMode": _sometimes(draw, 0.1, True),
            "extraArgs": _sometimes(draw, 0.2, ["--seed", "7", "--disable-log-stats"]),
            "env": _sometimes(draw, 0.2, [{"name": "LEVEL", "value": "$(A)"}, {"name": "S", "secret": {"name": "s"}}]),
        },
        "memory": {
            "kvCacheDtype": _sometimes(draw, 0.2, draw.choice(facts.kv_dtypes)),
            "kvOffload": _sometimes(draw, 0.1, {"size": "8Gi", "backend": draw.choice(["native", "lmcache"])}),
        },
        "quantization": {"method": _sometimes(draw, 0.2, draw.choice(facts.quantizations))},
        "adapters": _sometimes(draw, 0.2, {
            "items": [{"name": "a", "source": "pvc://claim/a"}, {"name": "b", "source": "/opt/b"}],
            "runtimeLoading": _sometimes(draw, 0.5, True),
            "tokenSecret": _sometimes(draw, 0.4, {"name": "adapters"}),
        }),
        "multimodal": _sometimes(draw, 0.2, draw.choice([{"images": 4, "videos": 0, "audios": 1}, {"textOnly": True}, {"allowedDomains": ["a.example"]}])),
        "topology": {
            "executor": _sometimes(draw, 0.3, draw.choice(["mp", "ray"])),
            "dataMode": _sometimes(draw, 0.6, draw.choice(["internal", "hybrid", "external"])) if mixture else None,
            "expertBalancing": _sometimes(draw, 0.2, True) if mixture else None,
            "groups": _sometimes(draw, 0.3, "LeaderWorkerSet"),
            "tolerations": _sometimes(draw, 0.2, [{"operator": "Exists"}]),
        },
        "networking": {
            "tlsSecret": _sometimes(draw, 0.2, "cert"),
            "apiKeySecret": _sometimes(draw, 0.2, {"name": "keys"}),
            "corsOrigins": _sometimes(draw, 0.2, ["https://a.example"]),
        },
        "rollout": {"drainSeconds": _sometimes(draw, 0.3, draw.choice([0, 60, 600]))},
        "storage": {"weights": _sometimes(draw, 0.3, draw.choice(VOLUMES))},
    }  # fmt: skip
    if draw.random() < 0.15:
        asked["model"]["task"] = draw.choice(["embed", "rerank", "classify"])
    else:
        asked |= _generating(draw, facts)
    kept: dict[str, Any] = _kept(asked)
    return kept


def _generating(draw: random.Random, facts: EngineFacts) -> dict[str, Any]:
    speculation = draw.choice(
        [
            {"method": "ngram", "tokens": 4, "lookupMax": 4, "lookupMin": 2},
            {"method": "eagle", "model": "/opt/head"},
            {"method": "eagle3", "model": "/opt/head", "tensor": 1},
            {"method": "draft", "model": "pvc://claim/draft", "revision": "main"},
            {"method": "mtp"},
        ]
    )
    return {
        "speculative": _sometimes(draw, 0.2, speculation),
        "toolCalling": _sometimes(
            draw, 0.3, {"parser": draw.choice(_values(facts, "--tool-call-parser")), "autoChoice": draw.random() < 0.7}
        ),
        "reasoning": _sometimes(draw, 0.3, {"parser": draw.choice(_values(facts, "--reasoning-parser"))}),
        "structuredOutput": _sometimes(draw, 0.2, {"backend": draw.choice(["auto", "xgrammar", "guidance", "outlines"])}),
        "chatTemplate": _sometimes(draw, 0.2, {"inline": "{{ messages }}"}),
    }  # fmt: skip


def _entry(draw: random.Random, spec: dict[str, Any], **shape: Any) -> PlanSet:
    wish = spec.get("speculative")
    tokens = wish.get("tokens", 2) if wish else 0
    batch = draw.choice([256, 2048, 8192])
    # With adapters beside it, an engine that guesses refuses a step that cannot check every guess.
    sequences = min(draw.choice([1, 8, 64, 256]), batch // (tokens + 1))
    settings = {
        "max_model_len": draw.choice([2048, 8192, 32768]),
        "max_num_seqs": sequences,
        "max_num_batched_tokens": batch,
        "utilization": draw.choice([0.5, 0.92, 0.9]),
        "kv_cache_bytes": _sometimes(draw, 0.2, 4 * 2**30),
        "kv_dtype": _sometimes(draw, 0.3, draw.choice([Dtype.FP8, Dtype.BFLOAT16])),
        "block_size": _sometimes(draw, 0.2, draw.choice([16, 32])),
        "prefix_caching": draw.random() < 0.8,
        "eager": draw.random() < 0.1,
        "max_graph_batch": _sometimes(draw, 0.3, draw.choice([8, 256])),
        "watermark_permille": draw.choice([0, 0, 5]),
        "max_queued_requests": _sometimes(draw, 0.4, 50),
        "lora": LoraSlots(max_loras=2, max_rank=16, max_cpu_loras=2) if spec.get("adapters") else None,
        "speculation": Speculation(method=wish["method"], tokens=tokens) if wish else None,
        "rope": _sometimes(draw, 0.1, draw.choice(ROPES)),
        "kv_offload_bytes": 8 * 2**30 if spec.get("memory", {}).get("kvOffload") else 0,
        "weight_offload_bytes": draw.choice([0, 0, 0, 2 * 2**30]),
    }
    rope = settings["rope"]
    if rope is not None and rope.positions is not None:
        settings["max_model_len"] = rope.positions
    return entry(replicas=1, **(settings | shape))


def _kept(asked: Any) -> Any:
    """Without what was not drawn."""
    if not isinstance(asked, dict):
        return asked
    return {
        key: _kept(value)
        for key, value in asked.items()
        if (value is not None and _kept(value) != {}) or value == {}
    }
