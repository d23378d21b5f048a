"""What is asked of a deployment, in the planner's words: lengths, load, targets and bounds.

Most fields of a spec are left out. Those that have one sensible meaning then get it here (a typical length from a percentile, the
bounds on replicas); the others stay None and are decided by `settle` and `choice`. Whether all this is possible is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, exp, inf, log
from typing import Final

from plimsoll.api.quantity import parse_bytes, parse_decimal
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.api.v1alpha1.workload import TokenPercentiles
from plimsoll.planning.layouts.rules import Wishes
from plimsoll.planning.lengths import P95, P99, Length
from plimsoll.planning.plan import Origin

ASSUMED_INPUT: Final = 1024
ASSUMED_OUTPUT: Final = 256
ASSUMED_CONCURRENCY: Final = 32
"""Requests in flight on a replica when no load is declared: so many that layouts differ in how well they batch."""
P99_OVER_P95: Final = P99 / P95
"""How many times as far from the median the 99th percentile of a normal distribution is as the 95th."""

Source = tuple[Origin, str]
SourceOf = Callable[[str], Source]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens of prompts (input) and of answers (output)."""

    input_typical: int
    output_typical: int
    input_long: int | None
    """The declared p99, else p95, else twice the p50; None where nothing is declared."""
    output_long: int | None
    input_p99: int | None
    """The declared p99, else that of log-normal lengths with the declared p50 and p95; None where nothing is declared."""
    output_p99: int | None
    declared: bool
    inputs: Length
    outputs: Length
    """All of them, and not only typical ones."""
    stretch: float = 1.0
    """Tokens of the mean request, as a multiple of a typical one's: declared tails lengthen it. Load comes in means."""

    @property
    def live(self) -> int:
        """Tokens of a typical sequence when it ends; the cache is shared out among running sequences by this."""
        return self.input_typical + self.output_typical


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How many replicas there may be, whatever the load."""

    fixed: int | None
    least: int
    most: int | None
    """None: as many as the declared load needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What is asked of one deployment."""

    namespace: str
    name: str
    spec: LLMDeploymentSpec
    """The spec with presets and defaults merged in."""
    source_of: SourceOf
    """Says of each field of the spec who set it."""
    lengths: Lengths
    concurrency: int | None
    rate: Fraction | None
    """Requests a second over all replicas."""
    ttft_ms: int | None
    itl_ms: int | None
    bounds: Bounds
    shared_prefix: float | None
    wishes: Wishes
    headroom_bytes: int | None
    share: Fraction | None
    """The part of a shared device that the user asks for."""
    most_per_hour: Fraction | None
    """The most money an hour that the deployment may cost."""
    generates: bool = True
    """False where a request is answered at once (a vector, a score, a class): nothing is decoded then."""

    def binds(self, field: str) -> bool:
        """Whether a field's value must be obeyed, as somebody set it."""
        return self.source_of(field)[0].by_hand

    @property
    def on_cpu(self) -> bool:
        return self.spec.topology.cpu is not None

    @property
    def cores(self) -> int | None:
        """Cores that a host must have, where the user says so."""
        return None if self.spec.topology.cpu is None else self.spec.topology.cpu.cores

    @property
    def device(self) -> str:
        """What a replica runs on, as one word."""
        return "host" if self.on_cpu else "GPU"

    @property
    def hours(self) -> str:
        """The unit in which costs are compared where prices are not known."""
        return f"{self.device}-hours"

    @property
    def work(self) -> str:
        """The unit of what is delivered, by which costs are told."""
        return "output token" if self.generates else "request"

    @property
    def targets(self) -> tuple[int | None, int | None]:
        """Of first tokens, and of the gaps between tokens."""
        return self.ttft_ms, self.itl_ms

    @property
    def has_target(self) -> bool:
        return any(target is not None for target in self.targets)


def read_intent(namespace: str, name: str, spec: LLMDeploymentSpec, source_of: SourceOf) -> Intent:
    workload, slo, memory = spec.workload, spec.slo, spec.memory
    rate = workload.requests_per_second
    percent = workload.shared_prefix_percent
    share = memory.tenancy_share_percent
    return Intent(
        namespace=namespace,
        name=name,
        spec=spec,
        source_of=source_of,
        lengths=_lengths(workload.input_tokens, workload.output_tokens, workload.context_tokens),
        concurrency=workload.concurrency,
        rate=None if rate is None else Fraction(parse_decimal(rate)),
        ttft_ms=slo.ttft_p99_ms,
        itl_ms=slo.itl_p99_ms,
        bounds=_bounds(spec),
        shared_prefix=None if percent is None else percent / 100,
        wishes=_wishes(spec),
        headroom_bytes=None if memory.headroom is None else parse_bytes(memory.headroom),
        share=None if share is None else Fraction(share, 100),
        most_per_hour=None
        if spec.cost.max_per_hour is None
        else Fraction(parse_decimal(spec.cost.max_per_hour)),
    )


def pooled(intent: Intent) -> Intent:
    """The intent of a task that decodes nothing: an answer counts as one token, and there is no time between tokens."""
    lengths = replace(
        intent.lengths,
        output_typical=1,
        output_long=0,
        output_p99=0,
        declared=intent.spec.workload.input_tokens is not None,
    )
    return replace(intent, lengths=lengths, itl_ms=None, generates=False)


def _lengths(
    prompt: TokenPercentiles | None, answer: TokenPercentiles | None, context: int | None
) -> Lengths:
    input_typical, output_typical = _typical(prompt, ASSUMED_INPUT), _typical(answer, ASSUMED_OUTPUT)
    if context is not None:
        # What fits is planned for: that more is declared is told with the context.
        input_typical = min(input_typical, max(1, context * 3 // 4))
        output_typical = min(output_typical, max(1, context - input_typical))
    mean = _mean(prompt, input_typical, context) + _mean(answer, output_typical, context)
    return Lengths(
        stretch=mean / (input_typical + output_typical),
        input_typical=input_typical,
        output_typical=output_typical,
        input_long=_long(prompt),
        output_long=_long(answer),
        input_p99=_p99(prompt),
        output_p99=_p99(answer),
        declared=prompt is not None and answer is not None,
        inputs=_all(prompt, input_typical),
        outputs=_all(answer, output_typical),
    )


def _all(length: TokenPercentiles | None, typical: int) -> Length:
    return Length.by(
        *((None, None, None) if length is None else (length.p50, length.p95, length.p99)), typical
    )


def _typical(length: TokenPercentiles | None, assumed: int) -> int:
    """The median, or a guess from a tail: request lengths are skewed, so a median is about half the p95."""
    if length is None:
        return assumed
    if length.p50 is not None:
        return length.p50
    tail = length.p95 if length.p95 is not None else length.p99
    return max(1, (tail or assumed) // 2)


def _mean(length: TokenPercentiles | None, typical: int, context: int | None) -> float:
    """Of log-normal lengths with the declared median and tail; without both, a typical length."""
    if length is None or length.p50 is None or (length.p95 is None and length.p99 is None):
        return typical
    sigma = _all(length, typical).sigma
    # No request is longer than the context, so no mean is.
    return min(typical * exp(sigma * sigma / 2), inf if context is None else context)


def _long(length: TokenPercentiles | None) -> int | None:
    if length is None:
        return None
    return (
        length.p99 if length.p99 is not None else length.p95 if length.p95 is not None else _twice(length.p50)
    )


def _p99(length: TokenPercentiles | None) -> int | None:
    if length is None or length.p99 is not None:
        return None if length is None else length.p99
    median = _typical(length, 1)
    p95 = length.p95 if length.p95 is not None else 2 * median
    return ceil(median * exp(P99_OVER_P95 * log(p95 / median)))


def _twice(median: int | None) -> int | None:
    return None if median is None else 2 * median


def _bounds(spec: LLMDeploymentSpec) -> Bounds:
    scaling = spec.scaling
    least = scaling.min if scaling.min is not None else 0 if scaling.zero is not None else 1
    return Bounds(fixed=spec.replicas, least=least, most=scaling.max)


def _wishes(spec: LLMDeploymentSpec) -> Wishes:
    topology = spec.topology
    open_means = 1 if topology.mode == "manual" else None
    return Wishes(
        tensor=topology.tensor if topology.tensor is not None else open_means,
        pipeline=topology.pipeline if topology.pipeline is not None else open_means,
        data=topology.data if topology.data is not None else open_means,
        expert_parallel=topology.expert_parallel,
        expert_balancing=topology.expert_balancing is True,
        interconnect=topology.interconnect,
    )
