"""How far the ledger's arithmetic is vLLM's own: blocks and tokens for given bytes, and weight bytes of a rank.

The engine's Python does the same sums without a GPU: it builds each model of the catalogue on the meta device, asks every layer
for its cache and groups them into blocks (`engine_arithmetic_script.py`, in the environment that `make test-parser` makes).
Nothing of it is measured and nothing is fitted: a row that differs is a rule of the engine that the ledger lacks, or a config
of the catalogue that says less than the published one.

    .venv/bin/python benchmarks/engine_arithmetic.py [--version 0.33.0] [--model NAME]... [--tensor 1 8] [--kv auto fp8]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(1, str(Path(__file__).parents[1] / "e2e"))  # whose programs make the environment

import arguments
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.gpus import GIB, Gpu, gpu_named
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.models import catalogue_config, catalogue_names, lookup
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv_rules import cache_plan, prefix_caching_by_default
from plimsoll.planning.memory.rank_weights import rank_weight_bytes
from plimsoll.planning.settings import EngineSettings
from tests.real_parser import setup

SCRIPT = Path(__file__).with_name("engine_arithmetic_script.py")
LONGEST = 32_768
SEQUENCES, BATCHED = 256, 8192
AVAILABLE = (10 * GIB + 12_345_678, 61 * GIB)
REFUSED = (0, 0, 0)
WEIGHTS_WITHIN = 0.001
KV_NAMES = {"auto": None, "fp8": Dtype.FP8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One model in one layout."""

    name: str
    model: ModelFacts
    gpu: Gpu
    version: str
    tensor: int
    pipeline: int
    kv: str
    block: int | None

    @property
    def title(self) -> str:
        stages = f" pp{self.pipeline}" if self.pipeline > 1 else ""
        block = f" block {self.block}" if self.block else ""
        return f"{self.name} tp{self.tensor}{stages} {self.kv}{block}"

    @property
    def length(self) -> int:
        return min(LONGEST, self.model.architecture.max_positions)

    def question(self) -> dict[str, Any]:
        major, _, minor = self.gpu.compute.partition(".")
        arguments: dict[str, Any] = {
            "max_model_len": self.length,
            "max_num_seqs": SEQUENCES,
            "max_num_batched_tokens": BATCHED,
            "kv_cache_dtype": self.kv,
        }
        return {
            "config": _whole(catalogue_config(self.name), self.model),
            "gpu": {
                "compute": [int(major), int(minor)],
                "name": self.gpu.name,
                "bytes": self.gpu.memory_bytes,
            },
            "tensor": self.tensor,
            "pipeline": self.pipeline,
            "arguments": arguments | ({"block_size": self.block} if self.block else {}),
            "available": list(AVAILABLE),
        }


def _whole(config: Mapping[str, object], model: ModelFacts) -> dict[str, object]:
    """The catalogue keeps what an architecture is read from, in few words. Published configs also say how activations are scaled,
    and that there is no window or no narrow way for queries where there is none (left out, the library that reads them would take
    a default); they name every module that a pattern of ours means, and what every ModelOpt checkpoint leaves alone."""
    whole = {"sliding_window": None, **config}
    if "kv_lora_rank" in config:
        whole = {"q_lora_rank": None, **whole}
    if isinstance(text := whole.get("text_config"), Mapping):
        whole["text_config"] = {"sliding_window": None, **text}
    kinds = whole.get("indexer_types")
    if isinstance(kinds, list):
        whole["index_topk_pattern"] = "".join("S" if kind == "shared" else "F" for kind in kinds)
    quantization = whole.get("quantization_config")
    if not isinstance(quantization, Mapping):
        return whole
    if quantization.get("quant_method") == "fp8":
        whole["quantization_config"] = {"activation_scheme": "dynamic", **quantization}
    elif isinstance(named := quantization.get("quantized_layers"), Mapping):
        whole["quantization_config"] = {**quantization, "quantized_layers": _each(named, model)}
    elif "quant_algo" in quantization and not {"ignore", "exclude_modules"} & set(quantization):
        whole["quantization_config"] = {**quantization, "ignore": ["lm_head", "*latent_proj*"]}
    return whole


def _each(named: Mapping[str, object], model: ModelFacts) -> dict[str, object]:
    """The first expert of each layer stands for all of them: the engine asks no other."""
    found = {}
    for pattern, stored in named.items():
        for layer in range(len(model.architecture.layers)) if "layers.*" in pattern else (0,):
            name = pattern.replace("layers.*", f"layers.{layer}").replace("experts.*", "experts.0")
            found[name.rstrip("*")] = stored
    return found


def distinct(names: Iterable[str]) -> Iterator[tuple[str, ModelFacts]]:
    """The first model of each architecture."""
    seen = set()
    for name in names:
        model = lookup(name)
        if model is not None and model.architecture not in seen and not model.architecture.encoder:
            seen.add(model.architecture)
            yield name, model


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How our figures compare with the engine's; `refused` where it could not do its own."""

    case: Case
    refused: str = ""
    cache: str = ""
    """What differs of blocks and tokens; empty where nothing does."""
    weights: float = 0.0
    """Ours over the engine's, less one, of the stage that differs most."""

    @property
    def equal(self) -> bool:
        return not self.cache and abs(self.weights) <= WEIGHTS_WITHIN


def judged(case: Case, answer: dict[str, Any]) -> Verdict:
    if "error" in answer:
        return Verdict(case=case, refused=answer["error"])
    engine, layout = engine_facts("vllm", case.version), Layout(tensor=case.tensor, pipeline=case.pipeline)
    arch = case.model.architecture
    settings = EngineSettings(
        max_model_len=case.length,
        max_num_seqs=SEQUENCES,
        max_num_batched_tokens=BATCHED,
        utilization=0.9,
        kv_dtype=KV_NAMES[case.kv],
        block_size=case.block,
        prefix_caching=prefix_caching_by_default(arch, engine),
    )
    plan = cache_plan(arch, gpu=case.gpu, layout=layout, engine=engine, settings=settings)
    ours = [
        (blocks, plan.block_tokens, plan.tokens_line(blocks, case.length))
        if plan.admits(blocks, case.length)
        else REFUSED
        for blocks in (plan.blocks([size] * case.pipeline) for size in AVAILABLE)
    ]
    theirs = [
        REFUSED if "refused" in one else (one["blocks"], one["block_tokens"], one["tokens"])
        for one in answer["capacity"]
    ]
    groups = [
        f"{g.spec.kind} {len(g.layers)} x {g.spec.block_tokens} tokens, {g.spec.page_bytes} B"
        for g in plan.groups
    ]
    different = [(own, other) for own, other in zip(ours, theirs, strict=True) if not _same(own, other)]
    stages = zip(rank_weight_bytes(case.model, layout).stages, answer["weights"], strict=True)
    return Verdict(
        case=case,
        cache=f"ours {different[0][0]} engine's {different[0][1]}; ours {_counted(groups)}; engine's "
        f"{_counted(answer['capacity'][-1].get('groups', []))}" if different else "",
        weights=max((own / other - 1 for own, other in stages), key=abs),
    )  # fmt: skip


def _same(own: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """The engine counts requests in floating point: one token of rounding is no difference."""
    return own[:2] == other[:2] and abs(own[2] - other[2]) <= 1


def _counted(groups: Sequence[str]) -> str:
    return ", ".join(f"{times} of {group}" for group, times in Counter(groups).items()) or "nothing"


def ask(cases: Sequence[Case], place: Path, version: str) -> Iterator[dict[str, Any]]:
    """The engine's answers, as they come."""
    command = [str(setup.python(place)), str(SCRIPT), str(setup.source(place, version))]
    with tempfile.TemporaryFile("w+") as questions:
        json.dump([case.question() for case in cases], questions)
        questions.seek(0)
        with subprocess.Popen(  # noqa: S603 - the engine's own Python, on a program of ours
            command, stdin=questions, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as child:
            for line in child.stdout or ():
                yield json.loads(line)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--version", default="0.33.0", choices=setup.VERSIONS)
    parser.add_argument(
        "--model", action="append", type=arguments.model, help="a model of the catalogue; default: all"
    )
    parser.add_argument("--gpu", type=arguments.gpu, default="H100-SXM-80GB")
    parser.add_argument("--tensor", type=arguments.count, nargs="+", default=[1, 8])
    parser.add_argument("--pipeline", type=arguments.count, nargs="+", default=[1])
    parser.add_argument("--kv", nargs="+", default=["auto"], choices=sorted(KV_NAMES))
    parser.add_argument(
        "--block", type=arguments.from_zero, nargs="+", default=[0], help="0: the engine's choice"
    )
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args()
    place = setup.folder()
    if lacking := setup.missing(place):
        sys.stderr.write(
            f"engine_arithmetic needs the parsers' environment: {lacking}; run `make test-parser`\n"
        )
        return 3
    cases = [
        Case(name=name, model=model, gpu=gpu_named(told.gpu), version=told.version, tensor=tensor, pipeline=pipeline, kv=kv, block=block or None)
        for name, model in distinct(told.model or catalogue_names())
        for tensor in told.tensor
        for pipeline in told.pipeline
        for kv in told.kv
        for block in told.block
    ]  # fmt: skip
    verdicts = []
    for case, answer in zip(cases, ask(cases, place, told.version), strict=False):
        verdicts.append(judged(case, answer))
        if not told.json:
            _print(verdicts[-1])
    return _summary(verdicts, len(cases), told.json)


def _print(verdict: Verdict) -> None:
    what = "refused" if verdict.refused else "equal" if verdict.equal else "DIFFERS"
    told = verdict.refused or "; ".join(
        filter(
            None,
            [
                verdict.cache,
                f"weights {verdict.weights:+.2%}" if abs(verdict.weights) > WEIGHTS_WITHIN else "",
            ],
        )
    )
    sys.stdout.write(f"{what:8} {verdict.case.title}  {told}\n")
    sys.stdout.flush()


def _summary(verdicts: Sequence[Verdict], asked: int, as_json: bool) -> int:
    done = [one for one in verdicts if not one.refused]
    figures = {
        "cases": asked,
        "built": len(done),
        "models": len({one.case.name for one in done}),
        "cache_equal": sum(not one.cache for one in done),
        "weights_within_0_1pct": sum(abs(one.weights) <= WEIGHTS_WITHIN for one in done),
        "refused": asked - len(done),
    }
    if as_json:
        rows = {one.case.title: one.cache or f"weights {one.weights:+.3%}" for one in done if not one.equal}
        sys.stdout.write(json.dumps({**figures, "differ": rows}) + "\n")
    else:
        sys.stdout.write("".join(f"{name:24} {value}\n" for name, value in figures.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
