"""What the traffic looks like and what latency it is promised: what a user declares, never what was observed."""

import re
from typing import Annotated, ClassVar, Final

from pydantic import Field

from plimsoll.api.base import Amount, ApiModel, Int, LabelName, Milliseconds, Percent, Rule, Tokens, field


def _rises(lower: str, upper: str) -> Rule:
    return Rule(
        name=f"percentiles-rise-{lower}-{upper}",
        cel=f"!has(self.{lower}) || !has(self.{upper}) || self.{lower} <= self.{upper}",
        holds=lambda m: (
            getattr(m, lower) is None or getattr(m, upper) is None or getattr(m, lower) <= getattr(m, upper)
        ),
        message=f"{lower} must not be above {upper}",
        field=lower,
    )


class TokenPercentiles(ApiModel):
    """Percentiles of a length in tokens: p95, or p50 and p99, or all three."""

    whole: ClassVar[bool] = True
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="percentiles-some",
            cel="has(self.p50) || has(self.p95) || has(self.p99)",
            holds=lambda m: any(v is not None for v in (m.p50, m.p95, m.p99)),
            message="at least one of p50, p95 and p99 must be set",
        ),
        _rises("p50", "p95"),
        _rises("p95", "p99"),
        _rises("p50", "p99"),
    )

    p50: Tokens | None = field("Half are at most this long.")
    p95: Tokens | None = field("95 of 100 are at most this long.")
    p99: Tokens | None = field("99 of 100 are at most this long.")

    @property
    def exceeded(self) -> int:
        """What a context must exceed. A median may be all of it, as a prompt may where nothing is answered; of a p99 alone nobody can say how
        far most stay below it."""
        return self.p95 or (self.p50 or 1) - 1


class Workload(ApiModel):
    """The declared traffic. Observed traffic stands in status.observed, apart from this."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="load-once",
            cel="!has(self.concurrency) || !has(self.requestsPerSecond)",
            holds=lambda m: m.concurrency is None or m.requests_per_second is None,
            message="only one of concurrency and requestsPerSecond may be set; one follows from the other",
        ),
        Rule(
            name="input-within-context",
            cel="!has(self.contextTokens) || !has(self.inputTokens) || (has(self.inputTokens.p95) ? self.inputTokens.p95 : "
            "has(self.inputTokens.p50) ? self.inputTokens.p50 - 1 : 0) < self.contextTokens",
            holds=lambda m: (
                m.context_tokens is None
                or m.input_tokens is None
                or m.input_tokens.exceeded < m.context_tokens
            ),
            message="contextTokens must be above inputTokens: prompts would be refused",
            field="contextTokens",
        ),
    )

    preset: LabelName | None = field(
        "Starting point for what is left open: a preset (chat, chat-shared-prompts, code-completion, "
        "long-documents, batch, reasoning, small-gpu, tool-calling, multi-gpu) or one of the admin's own."
    )
    context_tokens: Annotated[Int, Field(ge=16, le=16777216)] | None = field(
        "Longest request, input with output (the engine's max model length). Absent: p99 of both, else "
        "by p50 and p95; else the model's own limit, which costs memory, as a condition says."
    )
    input_tokens: TokenPercentiles | None = field("Lengths of prompts. Absent: about 1024.")
    output_tokens: TokenPercentiles | None = field("Lengths of answers. Absent: about 256.")
    shared_prefix_percent: Percent | None = field(
        "Share of prompt tokens that requests have in common at their start. Absent: 0."
    )
    concurrency: Annotated[Int, Field(ge=1, le=1000000)] | None = field(
        "Requests in flight at once, over all replicas, at the peak. Absent: by requestsPerSecond, else 32 a replica."
    )
    requests_per_second: Amount | None = field(
        'Arrival rate at the peak, over all replicas, as "12.5". Absent: none.'
    )


SHARE: Final = re.compile(r"[5-9][0-9](\.[0-9]{1,4})?")
"""Of requests that are answered, in percent: one that is written as a part of one would promise nearly nothing, without a word."""


class SLO(ApiModel):
    """What latency and availability the deployment promises; alerts and scaling cite the same numbers."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="availability-in-percent",
            cel="!has(self.availabilityPercent) || self.availabilityPercent.matches('^[5-9][0-9]([.][0-9]{1,4})?$')",
            holds=lambda m: m.availability_percent is None or bool(SHARE.fullmatch(m.availability_percent)),
            message="availabilityPercent is 50 to 99.9999, not 0.999",
            field="availabilityPercent",
        ),
    )

    ttft_p99_ms: Milliseconds | None = field(
        "99 of 100 requests see their first token within this many milliseconds."
    )
    itl_p99_ms: Milliseconds | None = field(
        "99 of 100 gaps between tokens, of all answers together, are at most this many milliseconds."
    )
    availability_percent: (
        Annotated[str, Field(max_length=8, pattern=r"^[0-9]{1,3}(\.[0-9]{1,4})?$")] | None
    ) = field('Share of requests that are answered, as "99.9".')
