"""Plimsoll's own law, the very functions that the operator calls, on what it would see (`plimsoll`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from plimsoll.control.decision import Action, Decision, RoleDecision, finds_no_gpus
from plimsoll.control.fleet import Fleet, decide_fleet
from plimsoll.control.idle import last_asked, wake_of
from plimsoll.control.law import Law
from plimsoll.control.memory import Memory
from plimsoll.control.record import Act
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals
from plimsoll.control.situation import Bounds, Capacity, ReplicaState, Role, ServingSet, Situation, Slo, Zero
from plimsoll.planning.placing.budgets import UNLIMITED, Limits
from plimsoll.simulate.gateway import Wake
from plimsoll.simulate.policies.base import Asked, SetView, View, Wish
from plimsoll.simulate.policies.heard import Heard
from plimsoll.simulate.policies.retuning import Retuning
from plimsoll.simulate.scrapes import EXPORTS
from plimsoll.simulate.several import Played
from plimsoll.simulate.tuning import Try, Tunable
from plimsoll.simulate.world import SCRAPE_S, Hardware

SET = "simulated"
SPACE = "simulated"


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
        interval_s: float = SCRAPE_S,
        zero: Wake | None = None,
        sets: Sequence[Played] = (),
        limits: Limits = UNLIMITED,
        tunable: Tunable | None = None,
    ) -> None:
        """`sets` are all of a plan that has several, or may grow onto another one, and `limits` what the budget leaves them together. Engines'
        settings stay as planned without `tunable`; where there are several sets, each has its own."""
        self.capacity = capacity
        self.slo = slo
        self.hardware = hardware
        law = Law(tick_s=interval_s)
        if target is not None:
            # The gap between the two targets is the law's own: it keeps the number still.
            law = replace(law, target=target, down_target=target - (law.target - law.down_target))
        self.law = law
        self.up_window_s = up_window_s
        self.down_window_s = down_window_s
        self.zero = zero
        self.sets = tuple(sets)
        self.limits = limits
        self._known = sum(not one.stands_by for one in sets)
        """How many of the sets the law is given: those of the plan, and one more that stands by each time the others find no more devices."""
        self._asked_at: float | None = None
        self._written = 0
        self._noted_at: float | None = None
        """When a change of the annotation was last seen."""
        self.settings: Mapping[str, float] = {
            "target": law.target,
            "down_target": law.down_target,
            **({} if interval_s == SCRAPE_S else {"interval_s": interval_s}),
        }
        self.last: Decision | None = None
        self._memory = Memory()
        self._window = Window()
        self._heard = Heard(interval_s)
        tunables = [one.tunable for one in sets] or [tunable]
        known = [one for one in tunables if one is not None]
        self._retuning = Retuning(known, slo=slo, law=law) if len(known) == len(tunables) else None

    def decide(self, view: View) -> Wish | None:
        self._window = self._window.add(view.now, view.arrived)
        live = [one.id for one in view.ready]
        signals = self._heard.signals(self._window, now=view.now, live=live, gateway=view.waiting)
        sets = self._several(view) if self.sets else (self._alone(view),)
        bounds = Bounds(min=view.least, max=view.most)
        busy = self._retuning is not None and self._retuning.under_way
        situation = Situation(
            name=f"{SPACE}/deployment",
            roles=(Role(sets=tuple(sets), signals=signals, bounds=bounds, exports=EXPORTS),),
            slo=self.slo,
            zero=self._wake(view, signals),
            up_window_s=self.up_window_s,
            down_window_s=self.down_window_s,
            busy="a retune is under way" if busy else None,
        )
        (decision,) = decide_fleet(
            now=view.now,
            situations=(situation,),
            memories={situation.name: self._memory},
            fleet=Fleet(
                free={each.pool: self._room(place, each) for place, each in enumerate(sets)},
                limits={} if self.limits == UNLIMITED else {SPACE: self.limits},
            ),
            law=self.law,
        )
        self._memory = decision.memory
        self.last = decision
        role = decision.roles[0]
        change, acts = self._retuned(view, sets, decision, signals)
        if not self.sets:
            return Wish(
                role.replicas,
                role.reason,
                role.message,
                change=change,
                acts=acts,
                asked=_asked(role, busy=busy),
            )
        if finds_no_gpus(decision.conditions):
            self._known = min(self._known + 1, len(self.sets))
        wished = [wish.replicas for wish in role.wishes]
        each = (*wished, *(0 for _ in self.sets[len(wished) :]))
        return Wish(role.replicas, role.reason, role.message, each, change=change, acts=acts)

    def _retuned(
        self,
        view: View,
        sets: Sequence[ServingSet],
        decision: Decision,
        signals: Signals,
    ) -> tuple[Try | None, tuple[Act, ...]]:
        retuning = self._retuning
        if retuning is None:
            return None, ()
        place = retuning.lead(sets)
        change = retuning.advance(
            view,
            self._window,
            sets,
            place,
            about=self.sets[place].gpu if self.sets else "",
            signals=signals,
            decision=decision,
            most=self._hardware(place).most,
            room=any(self._room(at, each) > 0 for at, each in enumerate(sets)),
        )
        return change, retuning.acts

    def _alone(self, view: View) -> ServingSet:
        return ServingSet(
            name=SET,
            pool=SET,
            capacity=self._capacity(0, self.capacity),
            replicas=view.replicas,
            wanted=view.told,
            gpus=self.hardware.devices,
            provision_s=self.hardware.node_s if view.present >= self.hardware.ready else 0.0,
        )

    def _capacity(self, place: int, planned: Capacity) -> Capacity:
        return planned if self._retuning is None else self._retuning.capacity(place, planned)

    def _several(self, view: View) -> list[ServingSet]:
        used = [place for place, seen in enumerate(view.sets, 1) if seen.told or seen.replicas]
        self._known = max(self._known, *used, 0)
        known = zip(self.sets[: self._known], view.sets, strict=False)
        return [
            _serving(place, played, seen, self._capacity(place, played.capacity))
            for place, (played, seen) in enumerate(known)
        ]

    def _hardware(self, place: int) -> Hardware:
        return self.sets[place].hardware if self.sets else self.hardware

    def _room(self, place: int, each: ServingSet) -> float:
        """GPUs that further replicas of a set would find, after those that are asked for and have none yet."""
        taken = sum(1 for one in each.replicas if one.scheduled is not None)
        return max(0, self._hardware(place).most - taken - max(0, each.told - each.present)) * each.gpus

    def _wake(self, view: View, signals: Signals) -> Zero | None:
        if self.zero is None:
            return None
        if not self.zero.queried and view.written != self._written:
            self._written, self._noted_at = view.written, view.now
        before = self._asked_at
        self._asked_at = last_asked(
            before,
            now=view.now,
            signals=signals,
            waiting=view.waiting,
            noted_at=self._noted_at,
            counts=True,
        )
        return wake_of(
            now=view.now,
            after_s=self.zero.after_s,
            queried=self.zero.queried,
            waiting=view.waiting,
            woken_at=self._noted_at,
            asked_at=None if before is None else self._asked_at,
            reachable=True,
        )


def _asked(role: RoleDecision, *, busy: bool) -> Asked:
    need = role.need
    # Where nobody asks for any and nothing is under way, those that may sleep are there until they were idle and awake for long enough.
    dozes = role.wanted == 0 and bool(role.awake.why) and not busy
    views = (need.tokens, need.running, need.prompts, need.latency, need.forecast, need.gateway)
    return Asked(
        wanted=None if all(one is None for one in views) else role.wanted,
        waits=role.action is Action.DOWN or role.early or dozes,
    )


def _serving(place: int, played: Played, seen: SetView, capacity: Capacity) -> ServingSet:
    present = sum(one.state is not ReplicaState.LEAVING for one in seen.replicas)
    claim = played.claim
    return ServingSet(
        name=f"set {place + 1}",
        pool=f"set {place + 1}",
        capacity=capacity,
        replicas=seen.replicas,
        wanted=seen.told,
        product=claim.product,
        gpus=float(claim.gpus),
        price_per_hour=None if claim.price is None else float(claim.price),
        provision_s=played.hardware.node_s if present >= played.hardware.ready else 0.0,
    )
