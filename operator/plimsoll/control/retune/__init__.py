"""One reversible change of an engine's settings at a time, when live signals ask for it: written down, tried, judged, kept or undone.

`symptoms` says what is wrong and whether a setting is to blame, `ladder` which setting and by how much, `allowed` whether it
may be tried now, `judging` whether the try was good, and `machine` takes the next step. Nothing is done here: what should
be done follows from what was written down before (`effects`).
"""

from plimsoll.control.retune.effects import Effect, effect_of
from plimsoll.control.retune.ending import abandoned
from plimsoll.control.retune.machine import advance
from plimsoll.control.retune.scene import Consent, Knobs, Scene
from plimsoll.control.retune.steps import Past, Phase, RetuneMemory, Step
from plimsoll.control.retune.turned import Event, Turned

__all__ = [
    "Consent",
    "Effect",
    "Event",
    "Knobs",
    "Past",
    "Phase",
    "RetuneMemory",
    "Scene",
    "Step",
    "Turned",
    "abandoned",
    "advance",
    "effect_of",
]
