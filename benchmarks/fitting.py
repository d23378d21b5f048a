"""Fits the constants of `planning/speed/performance.yaml` to measured points: few numbers, deterministic, in plain Python.

A constant is one value and multipliers by class, so everything is fitted in logarithms: residuals are relative, nothing can
turn negative, and a pull towards "no change" (a prior, in the units of a standard deviation) shrinks a class to the mean of
all where its points say little. Gauss-Newton steps on the sum of squares, with the weight of far points reduced (Huber).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.planning.speed.performance import Case
from plimsoll.planning.speed.rates import Constant, Dimension, Factor, Key, keys_of
from plimsoll.planning.speed.roofline import Amounts, TimeCost

US = 1e-6
START: Mapping[TimeCost, float] = {
    TimeCost.DENSE_WEIGHTS: 1.2,
    TimeCost.EXPERT_WEIGHTS: 1.2,
    TimeCost.EXPERT_TILES: 1.0,
    TimeCost.CACHE_READ: 1.2,
    TimeCost.DECODE_MATH: 1.5,
    TimeCost.UNPACKING: 2.0,
    TimeCost.LAUNCH: 5 * US,
    TimeCost.EXPERT_LAYER: 20 * US,
    TimeCost.QUANTIZED_INPUT: 5 * US,
    TimeCost.ALL_REDUCE: 8 * US,
    TimeCost.ALL_REDUCE_BYTES: 10.0,
    TimeCost.SEQUENCE: 5 * US,
    TimeCost.SEQUENCE_LAYER: 0.2 * US,
    TimeCost.PROMPT_DENSE: 1.7,
    TimeCost.PROMPT_EXPERTS: 4.0,
    TimeCost.PROMPT_ATTENTION: 2.0,
    TimeCost.PROMPT_LINK: 2.0,
    TimeCost.PROMPT_LAUNCH: 20 * US,
    TimeCost.REQUEST: 0.02,
    TimeCost.REQUEST_TOKEN: 5 * US,
    TimeCost.REQUEST_BESIDE: 3e-4,
}
"""Where the fit starts, from the mechanism: efficiencies that libraries reach, some microseconds for a kernel in a graph,
four of them around routed experts, a one-shot reduction over NVLink."""
KNOWN = {
    TimeCost.DENSE_WEIGHTS,
    TimeCost.EXPERT_WEIGHTS,
    TimeCost.CACHE_READ,
    TimeCost.DECODE_MATH,
    TimeCost.PROMPT_DENSE,
    TimeCost.LAUNCH,
    TimeCost.EXPERT_LAYER,
    TimeCost.ALL_REDUCE,
}
"""Shares of a peak, which cannot be far from one, and latencies that any trace shows. Points of few layouts do not tell
kernels from reductions, so the others would take what belongs to these."""
LOOSE_PRIOR, KNOWN_PRIOR, CLASS_PRIOR = 1.0, 0.2, 0.2
NOISE = 0.08
"""Spread of a point that the priors are weighed against; larger than one run's, since points of a pair err together."""
TPOT_KNEE, TTFT_KNEE, TTFT_WEIGHT = 0.04, 0.12, 0.3
STARVED_WEIGHT = 0.3
ROUNDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    case: Case
    tpot: float
    ttft: float


Terms = list[tuple[float, tuple[int, ...]]]
Sides = tuple[Terms, Terms, Terms, Terms]
"""Of a decode step, a prompt's tokens, what a step with prompts adds, and a request off the device."""
Gradient = dict[int, float]


class Fit:
    def __init__(self, points: Sequence[Point]) -> None:
        keys: set[Key] = {(cost, None, "") for cost in TimeCost}
        for point in points:
            for cost in TimeCost:
                keys.update(keys_of(cost, point.case.classes))
        self._keys = sorted(keys, key=lambda key: (key[0], key[1] or "", key[2]))
        self._index = {key: place for place, key in enumerate(self._keys)}
        self._points = points
        self._terms = [self._of(point.case) for point in points]
        self.logs = [0.0] * len(self._keys)

    def run(self) -> dict[TimeCost, Constant]:
        for _ in range(ROUNDS):
            matrix = self._step()
        return self._constants([100 * NOISE * math.sqrt(variance) for variance in inverse_diagonal(matrix)])

    def _constants(self, spreads: Sequence[float]) -> dict[TimeCost, Constant]:
        by: dict[TimeCost, dict[Dimension, dict[str, Factor]]] = {cost: {} for cost in TimeCost}
        whole: dict[TimeCost, tuple[float, float]] = {}
        for key, log, spread in zip(self._keys, self.logs, spreads, strict=True):
            cost, dimension, name = key
            if dimension is None:
                whole[cost] = _short(START[cost] * math.exp(log)), round(spread, 1)
            else:
                rows = sum(point.case.classes.get(dimension) == name for point in self._points)
                found = Factor(factor=_short(math.exp(log)), sd_pct=round(spread, 1), rows=rows)
                by[cost].setdefault(dimension, {})[name] = found
        return {
            cost: Constant(value=value, sd_pct=spread, by=by[cost]) for cost, (value, spread) in whole.items()
        }

    def _of(self, case: Case) -> Sides:
        return (
            self._side(case, case.decode),
            self._side(case, case.prompt),
            self._side(case, case.launch),
            self._side(case, case.request),
        )

    def _side(self, case: Case, amounts: Amounts) -> Terms:
        return [
            (amount * START[cost], tuple(self._index[key] for key in keys_of(cost, case.classes)))
            for cost, amount in amounts.items()
            if amount
        ]

    def _step(self) -> list[list[float]]:
        size = len(self._keys)
        matrix = [[0.0] * size for _ in range(size)]
        target = [0.0] * size
        for place, (cost, dimension, _) in enumerate(self._keys):
            spread = CLASS_PRIOR if dimension else KNOWN_PRIOR if cost in KNOWN else LOOSE_PRIOR
            weight = (NOISE / spread) ** 2
            matrix[place][place] += weight
            target[place] -= weight * self.logs[place]
        for point, terms in zip(self._points, self._terms, strict=True):
            self._add(point, terms, matrix, target)
        step = solve(matrix, target)
        largest = max(abs(value) for value in step)
        damping = min(1.0, 1.0 / largest) if largest else 1.0
        self.logs = [log + damping * value for log, value in zip(self.logs, step, strict=True)]
        return matrix

    def _add(self, point: Point, terms: Sides, matrix: list[list[float]], target: list[float]) -> None:
        (decode, by_decode), (prompt, by_prompt), (launch, by_launch), (rest, by_rest) = map(
            self._value, terms
        )
        share = point.case.shares(decode, prompt, launch)
        prompts, launches = (
            share.tpot_prompts / point.case.pipeline,
            share.tpot_launches / point.case.pipeline,
        )
        tpot = decode + prompts * prompt + launches * launch
        residual = math.log(point.tpot / tpot)
        weight = _huber(residual, TPOT_KNEE) * (STARVED_WEIGHT if point.case.starved else 1.0)
        gradient = _mix((1.0, by_decode), (prompts, by_prompt), (launches, by_launch))
        _accumulate(_relative(gradient, tpot), residual, weight, matrix, target)
        if point.case.starved:
            return  # the wait for room says more about the pool than about these constants
        ttft = share.ttft_prompts * prompt + share.ttft_launches * launch + share.ttft_steps * decode + rest
        residual = math.log(point.ttft / ttft)
        weight = _huber(residual, TTFT_KNEE) * TTFT_WEIGHT**2
        gradient = _mix(
            (share.ttft_prompts, by_prompt),
            (share.ttft_launches, by_launch),
            (share.ttft_steps, by_decode),
            (1.0, by_rest),
        )
        _accumulate(_relative(gradient, ttft), residual, weight, matrix, target)

    def _value(self, terms: Terms) -> tuple[float, Gradient]:
        total, gradient = 0.0, Gradient()
        for amount, places in terms:
            value = amount * math.exp(sum(self.logs[place] for place in places))
            total += value
            for place in places:
                gradient[place] = gradient.get(place, 0.0) + value
        return total, gradient


def _huber(residual: float, knee: float) -> float:
    return min(1.0, knee / abs(residual)) if residual else 1.0


def _mix(*parts: tuple[float, Gradient]) -> Gradient:
    mixed = Gradient()
    for weight, gradient in parts:
        for place, value in gradient.items():
            mixed[place] = mixed.get(place, 0.0) + weight * value
    return mixed


def _relative(gradient: Gradient, scale: float) -> list[tuple[int, float]]:
    return [(place, value / scale) for place, value in gradient.items()]


def _accumulate(
    entries: list[tuple[int, float]],
    residual: float,
    weight: float,
    matrix: list[list[float]],
    target: list[float],
) -> None:
    for place, value in entries:
        row, pull = matrix[place], weight * value
        target[place] += pull * residual
        for other, second in entries:
            row[other] += pull * second


def solve(matrix: list[list[float]], target: list[float]) -> list[float]:
    """A symmetric positive definite system by Cholesky's decomposition."""
    return _back(lower := _cholesky(matrix), _forward(lower, target))


def inverse_diagonal(matrix: list[list[float]]) -> list[float]:
    """Variances, where the matrix is that of the normal equations."""
    size, lower = len(matrix), _cholesky(matrix)
    units = ([float(i == j) for j in range(size)] for i in range(size))
    return [sum(value * value for value in _forward(lower, unit)) for unit in units]


def _cholesky(matrix: list[list[float]]) -> list[list[float]]:
    size = len(matrix)
    lower = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            rest = matrix[i][j] - sum(map(float.__mul__, lower[i][:j], lower[j][:j]))
            lower[i][j] = math.sqrt(rest) if i == j else rest / lower[j][j]
    return lower


def _forward(lower: list[list[float]], target: list[float]) -> list[float]:
    found: list[float] = []
    for row, wanted in zip(lower, target, strict=True):
        found.append((wanted - sum(map(float.__mul__, row[: len(found)], found))) / row[len(found)])
    return found


def _back(lower: list[list[float]], target: list[float]) -> list[float]:
    size = len(target)
    result = [0.0] * size
    for i in reversed(range(size)):
        rest = target[i] - sum(lower[j][i] * result[j] for j in range(i + 1, size))
        result[i] = rest / lower[i][i]
    return result


def _short(value: float) -> float:
    return float(f"{value:.4g}")
