"""Rows of a Prometheus to samples of replicas. What is odd is left out: a figure that is no number was never said.

NaN, infinity, a count below zero, a share above one, buckets that fall or have no sum: none of them is believed, and none
becomes zero.

Each answer is read by itself while its rows come, and what all of them say is put together at the end: a large fleet's rows
together would be ten times as large as what they say.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from plimsoll.facts.histograms import Histogram, is_cumulative
from plimsoll.facts.pod_sample import PodKey, PodSample
from plimsoll.prometheus.vocabulary import COUNTERS, GAUGES, HISTOGRAMS, MOST_SHARE, SHARES, Vocabulary

Rows = Iterable[Mapping[str, Any]]
Figures = dict[PodKey, dict[str, Any]]
"""Fields of samples by pod."""
LOAD: Final = {**GAUGES, "kvCapacity": "kv_tokens"}
PLAIN: Final = ("kv", "load", "counters", "errors")
"""Questions whose rows each say one figure of a pod by its name."""
MOST_DIGITS: Final = 12
"""Digits of a count, beyond which it is not believed."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one answer says."""

    pods: Figures = field(default_factory=dict)
    histograms: Mapping[PodKey, Histogram] = field(default_factory=dict)
    """By namespace and serving set."""


def part_of(about: str, rows: Rows, words: Vocabulary) -> Part:
    if about in HISTOGRAMS:
        return Part(histograms=_histograms(rows))
    match about:
        case "ages":
            return Part(_ages(rows))
        case "pools":
            return Part(_pools(rows))
        case "kv":
            return Part(_figures(rows, words.fields(SHARES), most=MOST_SHARE))
        case "load":
            return Part(_figures(rows, words.fields(LOAD)))
        case "counters":
            return Part(_figures(rows, words.fields(COUNTERS)))
        case "errors":
            return Part(_figures(rows, words.fields({"requestSuccess": "errors"})))
    return Part()


def samples_of(parts: Mapping[str, Part]) -> dict[PodKey, PodSample]:
    """What all answers say together; a sample's name is the pod's UID where the rows carry one, else the pod's name.

    A pod for which no answer says when it was scraped was not scraped, so it has no sample.
    """
    nothing = Part()
    ages, pools = (parts.get(about, nothing).pods for about in ("ages", "pools"))
    plain = [parts[about].pods for about in PLAIN if about in parts]
    samples = {}
    for key in sorted(ages):
        said = dict(ages[key])
        for figures in plain:
            if (more := figures.get(key)) is not None:
                said |= more
        if (pool := pools.get(key)) is not None:
            said["kv_tokens"] = said.get("kv_tokens", 0) + pool["kv_tokens"]
            said["block_size"] = pool["block_size"]
        samples[key] = _sample(key, said)
    return samples


def _ages(rows: Rows) -> Figures:
    found: Figures = {}
    for row in rows:
        labels, value = _row(row)
        if value is None or not labels.get("pod"):
            continue
        # Of a name that has come again the pod that was there before may still be told of.
        if (said := found.get(key := _pod(labels))) is None or value > said["at"]:
            found[key] = {"at": value, "uid": labels.get("uid", "")}
    return found


def _pod(labels: Mapping[str, str]) -> PodKey:
    return labels.get("namespace", ""), labels.get("pod", "")


def _figures(
    rows: Rows, fields: Mapping[str, tuple[str, int]], *, most: float = sys.float_info.max
) -> Figures:
    """Each pod's fields from rows by name; where a pod exports several names of a field, the best of them.

    This and the buckets below are most of what reading a large fleet costs, hence one plain loop each.
    """
    found: Figures = {}
    several = {name for name, rank in fields.values() if rank}
    ranks: dict[tuple[PodKey, str], int] = {}
    for row in rows:
        try:
            labels = row["metric"]
            value = float(row["value"][1])
            key = labels.get("namespace", ""), labels["pod"]
            name, rank = fields[labels["__name__"]]
            said = found.get(key)
        except (KeyError, IndexError, TypeError, ValueError):
            continue
        if not 0 <= value <= most:
            continue
        if name in several:
            if rank > ranks.get((key, name), rank):
                continue
            ranks[key, name] = rank
        if said is None:
            found[key] = {name: value}
        else:
            said[name] = value
    return found


def _sample(key: PodKey, said: dict[str, Any]) -> PodSample:
    name = said.pop("uid", "") or key[1]
    if said.get("kv_tokens") is not None:
        said["kv_tokens"] = int(said["kv_tokens"])
    if "kv_fraction" in said:
        said["kv_fraction"] = min(1.0, said["kv_fraction"])
    if "finished" in said:
        # An engine tells of refusals from the first one on, and older ones never.
        said.setdefault("refused", 0.0)
    return PodSample(pod=name, **said)


def _pools(rows: Rows) -> Figures:
    found: Figures = {}
    for row in rows:
        labels, engines = _row(row)
        blocks, size = whole(labels.get("num_gpu_blocks")), whole(labels.get("block_size"))
        if not engines or not 0 < engines <= 10**MOST_DIGITS or not blocks or not size:
            continue
        # vLLM says the blocks of all engines of a pod together, once for each.
        said = found.setdefault(_pod(labels), {"kv_tokens": 0})
        if blocks * size > said["kv_tokens"]:
            said |= {"kv_tokens": blocks * size, "block_size": size}
    return found


def _histograms(rows: Rows) -> Mapping[PodKey, Histogram]:
    buckets: dict[PodKey, dict[float, float]] = {}
    sums: dict[PodKey, float] = {}
    # A fleet has few bounds and many histograms: each bound is read once, and histograms hold the same tuple.
    read: dict[str | None, float | None] = {None: None}
    for row in rows:
        try:
            labels = row["metric"]
            key, value, le = (
                (labels.get("namespace", ""), labels["set"]),
                float(row["value"][1]),
                labels.get("le"),
            )
            if le not in read:
                read[le] = float(le)
            bound = read[le]
            if not 0 <= value < math.inf or not (bound is None or bound >= 0):
                continue
            if bound is None:
                sums[key] = value
            elif key not in buckets:
                buckets[key] = {bound: value}
            else:
                counts = buckets[key]
                # One that is written in two ways, as 1 and 1.0, counts what either counted.
                counts[bound] = counts[bound] + value if bound in counts else value
        except (KeyError, IndexError, TypeError, ValueError):
            continue
    return _ordered(buckets, sums)


def _ordered(
    buckets: Mapping[PodKey, Mapping[float, float]], sums: Mapping[PodKey, float]
) -> Mapping[PodKey, Histogram]:
    found: dict[PodKey, Histogram] = {}
    ordered: dict[tuple[float, ...], tuple[float, ...]] = {}
    same: dict[tuple[float, ...], tuple[float, ...]] = {}
    for key, counts in buckets.items():
        as_they_came = tuple(counts)
        if (bounds := ordered.get(as_they_came)) is None:
            bounds = tuple(sorted(as_they_came))
            bounds = ordered[as_they_came] = same.setdefault(bounds, bounds)
        # Summed increases may fall by a rounding; what falls by more is no histogram.
        mended = _mended(tuple(map(counts.__getitem__, bounds)))
        if bounds[-1] == math.inf and mended is not None and key in sums:
            found[key] = Histogram(bounds, mended, sums[key])
    return found


def _mended(counts: tuple[float, ...]) -> tuple[float, ...] | None:
    if is_cumulative(counts):
        return counts
    mended, highest = [], 0.0
    for count in counts:
        if count < highest - 1e-6 * max(1.0, highest) - 0.5:
            return None
        highest = max(highest, count)
        mended.append(highest)
    return tuple(mended)


def _row(row: Mapping[str, Any]) -> tuple[Mapping[str, str], float | None]:
    try:
        return row["metric"], _number(row["value"][1])
    except (KeyError, IndexError, TypeError):
        return {}, None


def _number(text: Any) -> float | None:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def whole(text: str | None) -> int | None:
    """A label that holds a count; an engine without a cache writes None there."""
    return int(text) if text is not None and text.isdecimal() and len(text) <= MOST_DIGITS else None
