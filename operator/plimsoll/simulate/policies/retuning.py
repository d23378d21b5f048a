"""The operator's own retunes, on what it would see: the very functions that it calls, and what they would have the estate do."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.control.decision import Decision, limited
from plimsoll.control.gate import gate_of
from plimsoll.control.law import Law
from plimsoll.control.learning import lead_s
from plimsoll.control.memory import RoleMemory
from plimsoll.control.record import Act, acts_of
from plimsoll.control.retune import Effect, RetuneMemory, Scene, advance, effect_of
from plimsoll.control.retune.scene import KNOBS
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals, signals_of
from plimsoll.control.situation import Capacity, ReplicaState, Role, ServingSet, Slo
from plimsoll.simulate.policies.base import View
from plimsoll.simulate.tuning import Try, Tunable, Variant


class Retuning:
    def __init__(self, tunable: Tunable, *, slo: Slo, law: Law) -> None:
        self.acts: tuple[Act, ...] = ()
        """Of the last look."""
        self._tunable, self._slo, self._law = tunable, slo, law
        self._knobs = tunable.knobs
        self._settings: dict[str, str] = {}
        """That were found good, and are not as planned."""
        self._memory = RetuneMemory()
        self._variants: dict[tuple[tuple[str, str], ...], Variant] = {}

    @property
    def under_way(self) -> bool:
        return self._memory.step is not None

    def capacity(self, planned: Capacity) -> Capacity:
        """Of a replica, with what was found good."""
        return self._variant(self._settings).capacity if self._settings else planned

    def advance(
        self,
        view: View,
        window: Window,
        serving: ServingSet,
        *,
        signals: Signals,
        role: RoleMemory,
        decision: Decision,
        most: int,
    ) -> Try | None:
        """`serving` holds all replicas and `signals` are of all, `role` is what was known before the decision; `most` replicas find
        devices."""
        wish = decision.roles[0].replicas
        taken = sum(one.scheduled is not None for one in view.replicas)
        effect = effect_of(self._memory)
        plain = replace(serving, replicas=tuple(one for one in serving.replicas if one.id not in view.tried))
        there = tuple(one for one in serving.replicas if one.id in view.tried)
        changed = None if effect is None else replace(serving, replicas=there, wanted=0)
        scene = Scene(
            now=view.now,
            name=serving.name,
            knobs=self._knobs,
            planned={one: self._tunable.knobs.text(one) for one in self._settings},
            serving=plain,
            signals=signals if changed is None else _signals(view, window, plain),
            changed=changed,
            changed_signals=None if changed is None else _signals(view, window, changed),
            window=window,
            slo=self._slo,
            consent=self._tunable.consent,
            has_watermark=self._tunable.has_watermark,
            restarts=self._tunable.restarts,
            wants_more=role.over_since is not None,
            wanted=None if self._tunable.fixed else role.wanted,
            more_replicas=wish < view.most and not limited(decision.conditions) and taken < most,
            free_replicas=max(0, most - taken),
            start_s=lead_s(role, Role(sets=(plain,), signals=signals), self._law),
            data=gate_of(signals, self._law).open,
            scaled_at=role.up_at,
            scaled=wish != view.told,
            fleet_gpus=most * serving.gpus,
        )
        turned = advance(scene, self._memory)
        self.acts = acts_of(view.now, self._memory, turned)
        self._memory = turned.memory
        asked = effect_of(self._memory)
        return None if asked is None else self._asked(asked)

    def _asked(self, effect: Effect) -> Try:
        settings = {**self._settings, effect.setting: effect.value}
        if effect.adopt:
            self._settings = {
                one: value for one, value in settings.items() if value != self._tunable.knobs.text(one)
            }
            self._knobs = replace(
                self._tunable.knobs, **{KNOBS[one]: int(value) for one, value in self._settings.items()}
            )
        return Try(
            variant=self._variant(settings),
            replicas=effect.replicas,
            surge=effect.surge,
            adopt=effect.adopt,
        )

    def _variant(self, settings: dict[str, str]) -> Variant:
        key = tuple(sorted(settings.items()))
        if key not in self._variants:
            self._variants[key] = self._tunable.variant(settings)
        return self._variants[key]


def _signals(view: View, window: Window, serving: ServingSet) -> Signals:
    live = [one.id for one in serving.replicas if one.state is ReplicaState.READY]
    return signals_of(window, now=view.now, live=live)
