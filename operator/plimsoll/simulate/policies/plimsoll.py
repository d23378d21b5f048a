"""Plimsoll's own law, the very functions that the operator calls, on what it would see (`plimsoll`)."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.control.decision import Decision
from plimsoll.control.law import Law
from plimsoll.control.memory import Memory
from plimsoll.control.samples import Window
from plimsoll.control.scaling import decide
from plimsoll.control.signals import signals_of
from plimsoll.control.situation import Bounds, Capacity, Role, Room, ServingSet, Situation, Slo
from plimsoll.simulate.policies.base import View, Wish
from plimsoll.simulate.world import Hardware

SET = "simulated"


class Plimsoll:
    name = "plimsoll"
    histograms = True

    def __init__(
        self,
        *,
        capacity: Capacity,
        slo: Slo,
        hardware: Hardware,
        target: float | None = None,
        up_window_s: float = 30.0,
        down_window_s: float | None = None,
    ) -> None:
        self.capacity = capacity
        self.slo = slo
        self.hardware = hardware
        law = Law()
        if target is not None:
            # The gap between the two targets is the law's own: it keeps the number still.
            law = Law(target=target, down_target=target - (law.target - law.down_target))
        self.law = law
        self.up_window_s = up_window_s
        self.down_window_s = down_window_s
        self.settings: Mapping[str, float] = {"target": law.target, "down_target": law.down_target}
        self.last: Decision | None = None
        self._memory = Memory()
        self._window = Window()

    def decide(self, view: View) -> Wish | None:
        self._window = self._window.add(view.now, view.arrived)
        signals = signals_of(self._window, now=view.now, live=[one.id for one in view.ready])
        devices = self.hardware.devices
        serving = ServingSet(
            name=SET,
            pool=SET,
            capacity=self.capacity,
            replicas=view.replicas,
            wanted=view.told,
            gpus=devices,
            provision_s=self.hardware.node_s if view.present >= self.hardware.ready else 0.0,
        )
        situation = Situation(
            name="simulated/deployment",
            roles=(Role(sets=(serving,), signals=signals, bounds=Bounds(min=view.least, max=view.most)),),
            slo=self.slo,
            up_window_s=self.up_window_s,
            down_window_s=self.down_window_s,
        )
        free = self.hardware.most - sum(1 for one in view.replicas if one.scheduled is not None)
        decision = decide(
            now=view.now,
            situation=situation,
            memory=self._memory,
            room=Room(gpus={SET: max(0, free) * devices}),
            law=self.law,
        )
        self._memory = decision.memory
        self.last = decision
        role = decision.roles[0]
        return Wish(role.replicas, role.reason, role.message)
