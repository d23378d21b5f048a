"""What an engine's own metrics page says, read line by line into one sample.

Only wanted names are looked at: a page has thousands of lines, most of them of others. Lines that are no metrics are passed
over, as are values that are no numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from plimsoll.facts.histograms import Histogram, is_cumulative, total
from plimsoll.facts.pod_sample import PodSample
from plimsoll.prometheus.answers import whole
from plimsoll.prometheus.vocabulary import COUNTERS, GAUGES, HISTOGRAMS, MOST_SHARE, Vocabulary

LINE: Final = re.compile(
    r"([a-zA-Z_:][a-zA-Z0-9_:]*+)"
    r'(?:\{((?:[^"}]*+"(?:[^"\\]++|\\.)*+")*+[^"}]*+)\})?+'
    r"\s++(\S++)(?:\s++[-+.\d]\S*+)?+(?:\s++#.*+)?+\s*+$"
)
"""Name, labels and value. A time may follow, and in OpenMetrics an example with labels and a value of its own."""
LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
MOST_BOUNDS: Final = 200
"""Bounds of a histogram, beyond which it is not believed: engines have some twenty, and many samples of each replica are kept."""


def sample_of(text: str, words: Vocabulary, *, pod: str, at: float) -> PodSample:
    """The sample of one page. An engine with several ranks says everything once a rank: counts add up, shares are averaged."""
    plain, pools, buckets = _read(text, _wanted(words))
    tokens, block = _pools(pools)
    counters = {field: _first(plain, words.of(word)) for word, field in COUNTERS.items()}
    gauges = {field: _first(plain, words.of(word)) for word, field in GAUGES.items()}
    errors = _first(plain, tuple(f"{name}!error" for name in words.of("requestSuccess")))
    if counters["refused"] is None and counters["finished"] is not None:
        counters["refused"] = 0.0
    kinds = {field: _histogram(words.histogram(field), buckets, plain) for field in HISTOGRAMS}
    capacity = _first(plain, words.of("kvCapacity"))
    values: dict[str, Any] = {**counters, **gauges, **kinds}
    return PodSample(
        pod=pod,
        at=at,
        kv_fraction=_share(plain, words.of("kvUsage")),
        kv_tokens=tokens if capacity is None else int(capacity),
        block_size=block,
        errors=0.0 if errors is None and counters["finished"] is not None else errors,
        **values,
    )


Plain = dict[str, list[float]]
"""Values by exported name, one for each rank."""
Buckets = dict[str, dict[str, list[tuple[float, float]]]]
"""By exported name, then by the labels of a series: each bucket's bound and its count."""


def _read(text: str, wanted: Mapping[str, str]) -> tuple[Plain, list[tuple[int, int]], Buckets]:
    """All wanted lines of a page: plain values, the engines' pools (blocks, and tokens of each), and buckets."""
    plain: Plain = {}
    pools: list[tuple[int, int]] = []
    buckets: Buckets = {}
    for name, labels, value in _lines(text, wanted):
        kind = wanted[name]
        if kind == "pool":
            pools += _pool(labels)
        elif kind == "bucket":
            series = LABEL.sub(lambda found: "" if found[1] == "le" else found[0], labels)
            bound = _number(_label(labels, "le") or "", infinite=True)
            if bound is not None:
                buckets.setdefault(name, {}).setdefault(series, []).append((bound, value))
        elif value >= 0:
            failed = kind == "finished" and _label(labels, "finished_reason") == "error"
            plain.setdefault(f"{name}!error" if failed else name, []).append(value)
    return plain, pools, buckets


def _wanted(words: Vocabulary) -> Mapping[str, str]:
    """Exported name to how its lines are read."""
    found = dict.fromkeys(words.of("kvUsage", "kvCapacity", *GAUGES, *COUNTERS), "plain")
    found |= dict.fromkeys(words.of("requestSuccess"), "finished")
    found |= dict.fromkeys(words.of("cacheConfig"), "pool")
    for field in HISTOGRAMS:
        for name in words.histogram(field):
            found[f"{name}_bucket"], found[f"{name}_sum"] = "bucket", "plain"
    return found


def _first(plain: Mapping[str, list[float]], names: tuple[str, ...]) -> float | None:
    """Of the best name that the page has."""
    found = next((sum(plain[name]) for name in names if name in plain), None)
    return None if found == math.inf else found


def _share(plain: Mapping[str, list[float]], names: tuple[str, ...]) -> float | None:
    values = next((plain[name] for name in names if name in plain), [])
    believed = [min(1.0, value) for value in values if value <= MOST_SHARE]
    return sum(believed) / len(believed) if believed else None


def _lines(text: str, wanted: Mapping[str, object]) -> Iterator[tuple[str, str, float]]:
    for line in text.split("\n"):
        if line.startswith("#") or line.partition("{")[0].partition(" ")[0] not in wanted:
            continue
        found = LINE.match(line)
        value = _number(found[3]) if found is not None else None
        if found is not None and value is not None:
            yield found[1], found[2] or "", value


def _label(labels: str, name: str) -> str | None:
    return next((found[2] for found in LABEL.finditer(labels) if found[1] == name), None)


def _pool(labels: str) -> list[tuple[int, int]]:
    blocks, size = whole(_label(labels, "num_gpu_blocks")), whole(_label(labels, "block_size"))
    return [] if blocks is None or size is None else [(blocks, size)]


def _pools(pools: list[tuple[int, int]]) -> tuple[int | None, int | None]:
    """Tokens of all engines of the pod, and the size of a block. vLLM says the blocks of all of them together, once for each."""
    return (max(blocks * size for blocks, size in pools), pools[0][1]) if pools else (None, None)


def _histogram(
    names: tuple[str, ...],
    buckets: Mapping[str, Mapping[str, list[tuple[float, float]]]],
    plain: Mapping[str, list[float]],
) -> Histogram | None:
    for name in names:
        parts = []
        for pairs in buckets.get(f"{name}_bucket", {}).values():
            if len(pairs) > MOST_BOUNDS:
                continue
            bounds, counts = zip(*sorted(pairs), strict=True)
            if bounds[-1] == math.inf and is_cumulative(counts):
                parts.append(Histogram(bounds, counts))
        counted, sums = total(parts), plain.get(f"{name}_sum")
        if counted is not None and sums:
            return Histogram(counted.bounds, counted.counts, sum(sums))
    return None


def _number(text: str, *, infinite: bool = False) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) or (infinite and value == math.inf) else None
