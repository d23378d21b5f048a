"""Rows of a Prometheus to samples of replicas. What is odd is left out: a figure that is no number was never said.

NaN, infinity, a count below zero, a share above one, buckets that fall or have no sum: none of them is believed, and none
becomes zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from plimsoll.facts.histograms import Histogram, is_cumulative
from plimsoll.facts.pod_sample import PodSample
from plimsoll.prometheus.vocabulary import COUNTERS, HISTOGRAMS, SHARES, Vocabulary

Rows = Sequence[Mapping[str, Any]]
PodKey = tuple[str, str]
"""Namespace and name."""
GAUGE_FIELDS: Final = {"running": "running", "waiting": "waiting", "kvCapacity": "kv_tokens"}
MOST_DIGITS: Final = 12
"""Of a count that is believed."""
MOST_SHARE: Final = 1.05
"""A share a little above one is rounding; more is another unit or a lie."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a fleet said at one tick."""

    samples: Mapping[PodKey, PodSample]
    """Gauges and counters by pod; a sample's name is the pod's UID where the rows carry one, else the pod's name."""
    histograms: Mapping[PodKey, Mapping[str, Histogram]] = field(default_factory=dict)
    """By namespace and serving set, over five minutes, of the kinds that had their turn."""
    missing: tuple[str, ...] = ()
    """Questions without an answer."""


def reading(answers: Mapping[str, Rows], words: Vocabulary, *, missing: Iterable[str] = ()) -> Reading:
    found: dict[PodKey, dict[str, Any]] = {}
    for row in answers.get("ages", ()):
        labels, value = _row(row)
        if value is not None and labels.get("pod"):
            said = found.setdefault(_pod(labels), {})
            said["at"], said["uid"] = value, labels.get("uid", "")
    _fill(found, answers.get("kv", ()), words.fields(SHARES), most=MOST_SHARE)
    _fill(found, answers.get("load", ()), words.fields(GAUGE_FIELDS))
    _fill(found, answers.get("counters", ()), words.fields(COUNTERS))
    _fill(found, answers.get("errors", ()), words.fields({"requestSuccess": "errors"}))
    for row in answers.get("pools", ()):
        _pool(found, row)
    return Reading(
        samples={key: _sample(key, said) for key, said in sorted(found.items())},
        histograms=_histograms(answers),
        missing=tuple(sorted(missing)),
    )


def _pod(labels: Mapping[str, str]) -> PodKey:
    return labels.get("namespace", ""), labels.get("pod", "")


def _fill(
    found: Mapping[PodKey, dict[str, Any]],
    rows: Rows,
    fields: Mapping[str, tuple[str, int]],
    *,
    most: float = math.inf,
) -> None:
    """Each pod's fields from rows by name; where a pod exports several names of a field, the best of them.

    This and the buckets below are most of what reading a large fleet costs, hence one plain loop each.
    """
    ranks: dict[tuple[int, str], int] = {}
    for row in rows:
        try:
            labels = row["metric"]
            value = float(row["value"][1])
            said = found[labels.get("namespace", ""), labels["pod"]]
            name, rank = fields[labels["__name__"]]
        except (KeyError, IndexError, TypeError, ValueError):
            continue
        if not 0 <= value <= most or value == math.inf:
            continue
        if rank == 0 or rank <= ranks.get((id(said), name), rank):
            ranks[id(said), name] = rank
            said[name] = value


def _sample(key: PodKey, said: dict[str, Any]) -> PodSample:
    name = said.pop("uid", "") or key[1]
    if said.get("kv_tokens") is not None:
        said["kv_tokens"] = int(said["kv_tokens"])
    if "kv_fraction" in said:
        said["kv_fraction"] = min(1.0, said["kv_fraction"])
    return PodSample(pod=name, **said)


def _pool(found: Mapping[PodKey, dict[str, Any]], row: Mapping[str, Any]) -> None:
    labels, engines = _row(row)
    said = found.get(_pod(labels))
    blocks, size = whole(labels.get("num_gpu_blocks")), whole(labels.get("block_size"))
    if said is None or not engines or not 0 < engines <= 10**MOST_DIGITS or not blocks or not size:
        return
    said["kv_tokens"] = said.get("kv_tokens", 0) + int(engines) * blocks * size
    said["block_size"] = size


def _histograms(answers: Mapping[str, Rows]) -> Mapping[PodKey, Mapping[str, Histogram]]:
    found: dict[PodKey, dict[str, Histogram]] = {}
    # A fleet has few bounds and many histograms: each bound is read once, and histograms hold the same tuple.
    read: dict[str | None, float | None] = {None: None}
    same: dict[tuple[float, ...], tuple[float, ...]] = {}
    for kind in HISTOGRAMS:
        buckets: dict[PodKey, list[tuple[float, float]]] = {}
        sums: dict[PodKey, float] = {}
        for row in answers.get(kind, ()):
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
                if not 0 <= value < math.inf:
                    continue
                if bound is None:
                    sums[key] = value
                elif key in buckets:
                    buckets[key].append((bound, value))
                else:
                    buckets[key] = [(bound, value)]
            except (KeyError, IndexError, TypeError, ValueError):
                continue
        for key, pairs in buckets.items():
            pairs.sort()
            bounds, counts = zip(*pairs, strict=True)
            bounds = same.setdefault(bounds, bounds)
            # Summed increases may fall by a rounding; what falls by more is no histogram.
            mended = _mended(counts)
            if bounds[-1] == math.inf and mended is not None and key in sums:
                found.setdefault(key, {})[kind] = Histogram(bounds, mended, sums[key])
    return {key: found[key] for key in sorted(found)}


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
