"""The operator's own retunes in a simulation: the very functions that the operator calls, on what it would see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plimsoll.control.decision import Decision
from plimsoll.control.law import Law
from plimsoll.control.record import Act, acts_of
from plimsoll.control.retune import Effect, RetuneMemory, Scene, advance, effect_of
from plimsoll.control.retune.beside_scaling import beside_scaling
from plimsoll.control.retune.scene import KNOBS
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals, signals_of
from plimsoll.control.situation import Capacity, ReplicaState, ServingSet, Slo
from plimsoll.simulate.policies.base import View
from plimsoll.simulate.tuning import Try, Tunable, Variant


class Retuning:
    def __init__(self, tunables: Sequence[Tunable], *, slo: Slo, law: Law) -> None:
        """`tunables` are those of each set, in the order of the plan."""
        self.acts: tuple[Act, ...] = ()
        """What the last look has done."""
        self._tunables, self._slo, self._law = tuple(tunables), slo, law
        self._knobs = [one.knobs for one in tunables]
        self._settings: list[dict[str, str]] = [{} for _ in tunables]
        """By set: settings that were found good, and are not as planned."""
        self._memory = RetuneMemory()
        self._moving: Try | None = None
        """A rollout to settings as they were, as engines ended with what had been found good."""
        self._variants: dict[tuple[object, ...], Variant] = {}

    @property
    def under_way(self) -> bool:
        return self._memory.step is not None or self._moving is not None

    def capacity(self, place: int, planned: Capacity) -> Capacity:
        """What a replica of a set carries with the settings that were found good."""
        settings = self._settings[place]
        return self._variant(place, settings).capacity if settings else planned

    def lead(self, sets: Sequence[ServingSet]) -> int:
        """Which set is looked at, by its place: the one of the retune that is under way, else the largest."""
        step = self._memory.step
        about = [] if step is None else [place for place, one in enumerate(sets) if one.name == step.set]
        return about[0] if about else max(range(len(sets)), key=lambda place: sets[place].wanted or 0)

    def advance(
        self,
        view: View,
        window: Window,
        sets: Sequence[ServingSet],
        place: int,
        *,
        about: str,
        signals: Signals,
        decision: Decision,
        most: int,
        room: bool,
    ) -> Try | None:
        """One look at the set at `place`, of which at most `most` replicas find devices; returns the change that is to be tried.

        `signals` are of all replicas. `room`: one more replica of any set would find devices.
        """
        serving, tunable = sets[place], self._tunables[place]
        wish = decision.roles[0].replicas
        taken = sum(one.scheduled is not None for one in serving.replicas)
        effect = effect_of(self._memory)
        plain = replace(serving, replicas=tuple(one for one in serving.replicas if one.id not in view.tried))
        there = tuple(one for one in serving.replicas if one.id in view.tried)
        changed = None if effect is None else replace(serving, replicas=there, wanted=0)
        scene = Scene(
            now=view.now,
            name=serving.name,
            about=about,
            kind=serving.name,
            knobs=self._knobs[place],
            planned={one: tunable.knobs.text(one) for one in self._settings[place]},
            serving=plain,
            signals=signals if changed is None and len(sets) == 1 else _signals(view, window, plain),
            changed=changed,
            changed_signals=None if changed is None else _signals(view, window, changed),
            window=window,
            slo=self._slo,
            consent=tunable.consent,
            has_watermark=tunable.has_watermark,
            restarts=tunable.restarts,
            free_replicas=max(0, most - taken),
            busy=None if self._moving is None else "a rollout",
            scaled=wish != view.told,
            fleet_gpus=most * serving.gpus,
        )
        scene = beside_scaling(
            scene,
            role=decision.memory.of(decision.roles[0].role),
            told=decision.conditions,
            sets=sets,
            name=serving.name,
            signals=signals,
            law=self._law,
            counted=not tunable.fixed,
            more=wish < view.most and room,
        )
        turned = advance(scene, self._memory)
        self.acts = acts_of(view.now, self._memory, turned, about)
        self._memory = turned.memory
        asked = effect_of(self._memory)
        if asked is None:
            self._moving = self._moving if view.tried else None
            return self._moving
        found = self._asked(asked, place)
        if found.adopt and not view.tried:
            self._moving = replace(found, replicas=0, adopt=False)
        return found

    def _asked(self, effect: Effect, place: int) -> Try:
        settings, planned = (
            {**self._settings[place], effect.setting: effect.value},
            self._tunables[place].knobs,
        )
        if effect.adopt:
            good = {one: value for one, value in settings.items() if value != planned.text(one)}
            self._settings[place] = good
            self._knobs[place] = replace(planned, **{KNOBS[one]: int(value) for one, value in good.items()})
        return Try(
            site=place,
            variant=self._variant(place, settings),
            replicas=effect.replicas,
            surge=effect.surge,
            adopt=effect.adopt,
        )

    def _variant(self, place: int, settings: dict[str, str]) -> Variant:
        key = place, *sorted(settings.items())
        if key not in self._variants:
            self._variants[key] = self._tunables[place].variant(settings)
        return self._variants[key]


def _signals(view: View, window: Window, serving: ServingSet) -> Signals:
    live = [one.id for one in serving.replicas if one.state is ReplicaState.READY]
    return signals_of(window, now=view.now, live=live)
