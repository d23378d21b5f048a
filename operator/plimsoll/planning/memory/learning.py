"""How terms of the ledger use what real starts have taught.

What a start with the very same key showed is believed as it was measured, with the spread that starts have. What was measured on
something similar (another layout or version for the weights, another precision or batch for the rest, the engine's own image for an
owner's) moves a term only by the part that is more than starts vary, and leaves the term as uncertain as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from plimsoll.facts.learned import Learned, Residual, beyond_noise
from plimsoll.facts.learned_rows import LearnedKey
from plimsoll.facts.model import Certainty
from plimsoll.planning.memory.learned_key import learned_key, shape_key, whole_key
from plimsoll.planning.memory.situation import Estimate, Situation, gib_text

BESIDE: Final = ("context", "graphs", "encoder")
"""Terms that the engine does not report apart from its peak, so that a measurement of the peak includes them."""


def taught(now: Situation, found: Mapping[str, Estimate], learned: Learned) -> dict[str, Estimate]:
    """The terms that the formulas give, corrected by what real starts have taught."""
    terms = dict(found)
    own = learned_key(now.model, now.gpu, now.layout, now.engine, now.settings)
    weights = learned.find("weights", own)
    if weights is not None:
        terms["weights"] = _measured(terms["weights"], weights)
    elif (whole := _kin(learned, "weights", whole_key(now.model, now.gpu, now.engine))) is not None:
        part = terms["weights"].bytes / max(1, now.model.weights.total)
        terms["weights"] = _likely(terms["weights"], whole, whole.bytes * part)
    peak = learned.find("activation", own)
    if peak is not None:
        terms["activation"] = _measured(terms["activation"], peak)
        terms |= {name: replace(terms[name], spread=0.0) for name in BESIDE}
    else:
        shape = _kin(
            learned, "activation", shape_key(now.model, now.gpu, now.layout, now.engine, now.settings)
        )
        if shape is not None:
            terms["activation"] = _likely(terms["activation"], shape, beyond_noise(shape.bytes))
    return terms


def _kin(learned: Learned, term: str, key: LearnedKey) -> Residual | None:
    return learned.find(term, key) or learned.find(term, key.of_release)


def _measured(estimate: Estimate, residual: Residual) -> Estimate:
    return _with(estimate, residual, residual.bytes, float(residual.half_width))


def _likely(estimate: Estimate, residual: Residual, moved: float) -> Estimate:
    if not moved:
        return estimate
    # That a term is smaller than its formula says is not believed for another case: the spread still includes the formula's figure.
    return _with(estimate, residual, moved, estimate.spread + max(0.0, -moved))


def _with(estimate: Estimate, residual: Residual, moved: float, spread: float) -> Estimate:
    return Estimate(
        bytes=max(0.0, estimate.bytes + moved),
        spread=spread,
        formula=f"{estimate.formula} + learned residual",
        inputs={
            **estimate.inputs,
            "residual": gib_text(moved),
            "starts": str(residual.starts),
            "learned from": residual.key.flags,
        },
        certainty=Certainty.LEARNED,
    )
