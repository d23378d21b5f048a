"""How far a ramp's measurement is believed: whole for its own layout and lengths, half for others.

Half was found best for others, by measured points of models on hardware that the constants had never seen. At the ninth decile the
error for other lengths falls from 16 to 13% for a token and from 55 to 41% for the first one; for other layouts from 16 to 14% and
from 42 to 37%. Believing it whole would make neither better. Half also keeps a layout that was measured to be slow from losing to
one that was merely never measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Final

from plimsoll.facts.learned import Learned
from plimsoll.facts.learned_rows import LearnedKey
from plimsoll.facts.learned_speed import MOST_FACTOR, Speed
from plimsoll.planning.load import Correction, Load

SAME_LENGTHS: Final = 1.25
"""Factor within which lengths count as the ramp's own."""


@dataclass(frozen=True, slots=True)
class Belief:
    """What is known of the speed of one model on one layout."""

    speed: Speed
    own: bool
    """Whether this very layout was measured."""

    def at(self, load: Load) -> Correction:
        """By what factors the prediction for a load is to be moved."""
        speed = self.speed
        same = (
            self.own
            and _near(speed.input_tokens, load.input_tokens)
            and _near(speed.output_tokens, load.output_tokens)
        )
        ttft, ttft_spread = _believed(speed.ttft, speed.ttft_spread, same=same)
        tpot, tpot_spread = _believed(speed.tpot, speed.tpot_spread, same=same)
        return Correction(
            ttft=ttft,
            tpot=tpot,
            ttft_spread=ttft_spread,
            tpot_spread=tpot_spread,
            taught_by=f"{speed.loads} of {speed.input_tokens:,} + {speed.output_tokens:,} tokens on {speed.key.flags}",
        )


def belief(learned: Learned, key: LearnedKey) -> Belief | None:
    """What ramps say of this layout: the ramp of this very layout, else the newest of the same model, GPU and engine version. For an image
    that its owner brings, ramps of that image come before those of the engine's own."""
    if not learned.speeds:
        return None
    found = learned.speed(key)
    if found is not None:
        return Belief(found, own=True)
    kin = [one for one in learned.speeds if _kin(one.key, key)]
    return (
        Belief(max(kin, key=lambda one: (one.key.engine == key.engine, one.at)), own=False) if kin else None
    )


def _kin(one: LearnedKey, asked: LearnedKey) -> bool:
    engines = (asked.engine, asked.of_release.engine)
    return (one.model, one.gpu) == (asked.model, asked.gpu) and one.engine in engines


def _near(measured: int, asked: int) -> bool:
    return measured <= asked * SAME_LENGTHS and asked <= measured * SAME_LENGTHS


def _believed(factor: float, spread: float, *, same: bool) -> tuple[float, float]:
    """The factor and the spread that are used. The half that is not believed may still be true, so it widens the spread."""
    if same:
        return factor, spread
    half = sqrt(factor)
    return half, min(MOST_FACTOR, spread * max(half, 1 / half))
