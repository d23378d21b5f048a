"""The metrics page of one engine: the names that the version exports, with their labels, out of the engine model's counters.

Series that every version of the last two years has are listed here with their labels; names that changed between versions
come from the engine facts, under their logical name. `_created` series are left out, as in the engine's multiprocess mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from plimsoll.facts.engines import EngineFacts
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.meters import LATENCY, TOKENS, Edges, Histogram
from plimsoll.simulate.request import Request

REASONS: Final = ("stop", "length", "abort", "error", "repetition")
COPIES: Final = Edges((1.0, 2.0, 5.0, 10.0, 20.0), finer=None)
PREEMPTIONS: Final = Edges((1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0), finer=None)
STEP_TOKENS: Final = Edges(
    (1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0), finer=None
)
PER_TOKEN: Final = Edges(
    (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
    finer=None,
)  # fmt: skip
LATEST: Final = "admissionRejections"
"""Known by the versions that also count preemptions a request, and cached tokens by where they were."""

Values = Mapping[str, float]
"""By what a label adds; the empty word where there is one series only."""
Found = TypeVar("Found")


@dataclass(slots=True)
class Beside:
    """What the engine counts of finished requests beyond what the engine model itself does."""

    success: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    refused: dict[str, int] = field(
        default_factory=lambda: {"max_num_queued_reqs": 0, "max_num_queued_tokens": 0}
    )
    queue: Histogram = field(default_factory=lambda: Histogram(LATENCY))
    prefill: Histogram = field(default_factory=lambda: Histogram(LATENCY))
    decode: Histogram = field(default_factory=lambda: Histogram(LATENCY))
    inference: Histogram = field(default_factory=lambda: Histogram(LATENCY))
    per_token: Histogram = field(default_factory=lambda: Histogram(PER_TOKEN))
    asked: Histogram = field(default_factory=lambda: Histogram(TOKENS))
    copies: Histogram = field(default_factory=lambda: Histogram(COPIES))
    preemptions: Histogram = field(default_factory=lambda: Histogram(PREEMPTIONS))
    computed: Histogram = field(default_factory=lambda: Histogram(TOKENS))
    step_tokens: Histogram = field(default_factory=lambda: Histogram(STEP_TOKENS))
    _steps: int = 0
    _tokens: int = 0

    def finish(self, request: Request, reason: str) -> None:
        self.success[reason] += 1
        prefilled = request.first_at - request.outside - request.admitted_at
        decoded = request.finished_at - request.first_at
        self.queue.add(request.admitted_at - request.arrival)
        self.prefill.add(prefilled)
        self.decode.add(decoded)
        self.inference.add(prefilled + decoded)
        if request.output_tokens > 1:
            self.per_token.add(decoded / (request.output_tokens - 1))
        self.asked.add(request.output_tokens)
        self.copies.add(1)
        self.preemptions.add(request.preemptions)
        self.computed.add(request.input_tokens - request.cached)

    def look(self, engine: Engine) -> None:
        """Tokens a step since the last look, each step with their mean: the model takes many at once."""
        steps, tokens = engine.steps, engine.prompt_tokens + engine.generation_tokens
        if steps > self._steps:
            self.step_tokens.add((tokens - self._tokens) / (steps - self._steps), steps - self._steps)
        self._steps, self._tokens = steps, tokens


@dataclass(frozen=True, slots=True)
class Page:
    """One scrape."""

    engine: Engine
    beside: Beside
    facts: EngineFacts
    model: str
    cache: Mapping[str, str]
    """Labels of `cache_config_info`."""
    started: float

    def text(self) -> str:
        return "".join(self._lines())

    @property
    def _latest(self) -> bool:
        return LATEST in self.facts.metrics

    def _lines(self) -> Iterator[str]:
        who = f'engine="0",model_name="{escaped(self.model)}"'
        yield f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {self.started}\n"
        for name, values in self._named(self._gauges()):
            yield from _series(name, "gauge", values, who)
        for name, values in self._named(self._counters()):
            yield from _series(name, "counter", values, who)
        if self._latest:
            rejected = _by("reason", self.beside.refused)
            about = f'model_name="{escaped(self.model)}"'
            yield from _series("vllm:admission_rejections_total", "counter", rejected, about)
        for name, counted in self._named(self._histograms()):
            yield from _histogram(name, counted, who, self.engine.limits.max_model_len)
        for name in self.facts.metrics.get("cacheConfig", ()):
            labels = _labels(self.cache)
            yield f'# TYPE {name} gauge\n{name}{{engine="0",{labels}}} 1.0\n'

    def _named(self, values: Mapping[str, Found]) -> Iterator[tuple[str, Found]]:
        """Under the names of the version: a key is a logical name of the facts, or the name itself."""
        for key, value in values.items():
            if ":" in key:
                yield key, value
            else:
                for name in self.facts.metrics.get(key, ()):
                    yield name, value

    def _gauges(self) -> dict[str, Values]:
        engine = self.engine
        return {
            "running": {"": len(engine.running)},
            "waiting": {"": engine.queued},
            "vllm:num_requests_waiting_by_reason": _by("reason", {"capacity": engine.queued, "deferred": 0}),
            "sleepState": _by("sleep_state", {"awake": 1, "weights_offloaded": 0, "discard_all": 0}),
            "kvUsage": {"": engine.kv_fraction},
        }

    def _counters(self) -> dict[str, Values]:
        engine, hits = self.engine, self.engine.prefix_hits
        sources = {"local_compute": engine.prompt_tokens - hits, "local_cache_hit": hits}
        found: dict[str, Values] = {
            # The model counts prompts that share something; the engine all that it could have found in its cache.
            "prefixQueries": {"": engine.prompt_tokens if engine.limits.prefix_caching else 0},
            "prefixHits": {"": hits},
            "externalPrefixQueries": {"": 0},
            "externalPrefixHits": {"": 0},
            "vllm:mm_cache_queries_total": {"": 0},
            "vllm:mm_cache_hits_total": {"": 0},
            "preemptions": {"": engine.preemptions},
            "promptTokens": {"": engine.prompt_tokens},
            "vllm:prompt_tokens_by_source_total": _by("source", {**sources, "external_kv_transfer": 0}),
            "vllm:prompt_tokens_cached_total": {"": hits},
            "generationTokens": {"": engine.generation_tokens},
            "requestSuccess": _by("finished_reason", self.beside.success),
        }
        if self._latest:
            elsewhere = dict.fromkeys(("host", "p2p", "disk", "external_unspecified"), 0)
            found["vllm:prompt_tokens_cached_by_source_total"] = _by("source", {"device": hits, **elsewhere})
        return found

    def _histograms(self) -> dict[str, Histogram]:
        engine, beside = self.engine, self.beside
        found = {
            "timeToFirstToken": engine.ttft,
            "interToken": engine.itl,
            "timePerOutputToken": beside.per_token,
            "endToEnd": engine.e2e,
            "queueTime": beside.queue,
            "vllm:request_inference_time_seconds": beside.inference,
            "prefillTime": beside.prefill,
            "decodeTime": beside.decode,
            "promptLength": engine.prompt_lengths,
            "generationLength": engine.output_lengths,
            "vllm:request_max_num_generation_tokens": beside.asked,
            "vllm:request_params_max_tokens": beside.asked,
            "vllm:request_params_n": beside.copies,
            "vllm:request_prefill_kv_computed_tokens": beside.computed,
            "vllm:iteration_tokens_total": beside.step_tokens,
        }
        if self._latest:
            found["vllm:request_num_preemptions"] = beside.preemptions
        return found


def _by(label: str, values: Mapping[str, float]) -> Values:
    return {f',{label}="{key}"': value for key, value in values.items()}


def _series(name: str, kind: str, values: Values, who: str) -> Iterator[str]:
    yield f"# TYPE {name} {kind}\n"
    for label, value in values.items():
        yield f"{name}{{{who}{label}}} {float(value)}\n"


def _labels(values: Mapping[str, str]) -> str:
    return ",".join(f'{key}="{escaped(value)}"' for key, value in sorted(values.items()))


def _histogram(name: str, counted: Histogram, who: str, longest: int) -> Iterator[str]:
    yield f"# TYPE {name} histogram\n"
    sums = counted.exported()
    for edge, below in zip(counted.edges.exported, sums, strict=False):
        if counted.edges is TOKENS and edge > longest:
            break
        yield f'{name}_bucket{{{who},le="{edge}"}} {float(below)}\n'
    yield f'{name}_bucket{{{who},le="+Inf"}} {float(sums[-1])}\n'
    yield f"{name}_count{{{who}}} {float(sums[-1])}\n{name}_sum{{{who}}} {counted.total}\n"


def escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
