"""How many replicas, decided once a tick: at most one action a role, and every reason told with it.

The order is what matters here, and it reads from top to bottom: what a person fixed, what is asleep, whether there is data,
how much is needed, then up, down or stay. Each step is a module of its own; this one knows only their order.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from plimsoll.control import bounded, forecast, learning, telling, zero
from plimsoll.control.copying import replace
from plimsoll.control.decision import RISING, Action, Decision
from plimsoll.control.demand import Load, load_of, supply_of
from plimsoll.control.down import down, window_s
from plimsoll.control.gate import Gate, gate_of
from plimsoll.control.law import LAW, Law
from plimsoll.control.memory import Memory, RoleMemory
from plimsoll.control.need import Asked, asked, waking, whole_replicas
from plimsoll.control.placing import Placing, failed, further_fail, left_alone, placing, tried_again
from plimsoll.control.pools import ROUNDING, Allotment, grown, in_place
from plimsoll.control.situation import Room, Situation
from plimsoll.control.turn import Answer, Turn
from plimsoll.control.wish import charged


def decide(
    *, now: float, situation: Situation, memory: Memory, room: Room | None = None, law: Law = LAW
) -> Decision:
    """How many replicas each set of one deployment is to have. `room` is what the fleet and its budgets leave; None: no limit."""
    answers = list[Answer]()
    for role in situation.roles:
        known = memory.of(role.name)
        turn = Turn.of(now, situation, role, seen=known.seen, room=room, law=law)
        answer = _awake(turn, _decide(turn, known))
        answers.append(answer)
        if room is not None:
            room = room.after(role.sets, charged(role, answer.decision, answer.memory.up_at, now, law))
    told = [told for answer in answers for told in answer.told]
    return Decision(
        name=situation.name,
        roles=tuple(answer.decision for answer in answers),
        conditions=telling.together(told),
        memory=Memory(roles={answer.decision.role: answer.memory for answer in answers}),
    )


def _awake(turn: Turn, answer: Answer) -> Answer:
    """The answer, with why it does not sleep where it may."""
    if turn.situation.zero is None or not turn.there or not answer.decision.replicas:
        return answer
    why = zero.why_awake(turn, answer.memory, answer.told)
    return replace(answer, decision=replace(answer.decision, awake=why))


def _decide(turn: Turn, before: RoleMemory) -> Answer:
    role, situation, law = turn.role, turn.situation, turn.law
    memory = _remembered(turn, before)
    if not role.sets:
        return turn.answer(memory, wanted=0, reason="NoPlan", message="there is no set to scale")
    if role.bounds.pause is not None:
        message = f"nothing is changed: {role.bounds.pause}"
        return turn.answer(memory.unasked(turn.now), wanted=turn.there, reason="Paused", message=message)
    if role.bounds.fixed is not None:
        return bounded.fixed(turn, memory.unasked(turn.now), role.bounds.fixed)
    if situation.zero is not None and turn.there == 0:
        return bounded.asleep(turn, memory, situation.zero)
    gate, dark = gate_of(role.signals, law), memory.missing_since
    if not gate.open:
        memory = memory.unasked(turn.now)
        return bounded.held(
            turn, memory, reason=gate.told.reason, message=gate.told.message, told=(gate.told,)
        )
    if dark is not None:
        memory = replace(memory, missing_since=None)
        if turn.now - dark > law.blind_ticks * law.tick_s:
            memory = memory.blinded(turn.now)
    if _jumped(turn, before):
        message = "the first look, or the first after a jump of the clock; a change needs a second one"
        return bounded.held(turn, memory, reason="Watching", message=message, told=(gate.told,))
    return _sized(turn, memory, gate)


def _sized(turn: Turn, memory: RoleMemory, gate: Gate) -> Answer:
    role, situation, law, now = turn.role, turn.situation, turn.law, turn.now
    memory = _watched(turn, memory)
    lead = learning.lead_s(memory, role, law)
    load = load_of(role, memory, now=now, lead_s=lead, law=law, slo=situation.slo)
    if load.demand.owing:
        memory = replace(memory, changed=now, owing_since=memory.owing_since or now)
    elif memory.owing_since is not None:
        memory = replace(memory, owing_since=None)
    if not gate.missing:
        memory = learning.learned(memory, role, load, slo=situation.slo, now=now, law=law)
    view = asked(role, memory, load, slo=situation.slo, now=now, law=law)
    wanted = view.wanted
    if wanted is None:
        return _unsaid(turn, view, gate, load)
    window = window_s(situation, view.memory, lead, law, spent=load.holds.spent, now=now)
    # What those that are silent are asked for is asked for all the same: nothing goes for it once they speak again.
    memory = view.memory.wish(now, wanted + load.missing, window)
    placed = placing(turn, memory, least=role.bounds.min)
    counted = load.supply.counted
    rises = (view.sought or 0.0) - counted > ROUNDING
    view = replace(view, memory=_over(placed.memory, rises, turn))
    told = (gate.told, *((view.told,) if view.told else ()), *telling.stuck(role, placed))
    bound = bounded.into_bounds(turn, view.memory, told=told, wanted=whole_replicas(wanted), need=view.need)
    if bound is not None:
        return bound
    if placed.withdrawn:
        return replace(_withdrawn(turn, view, placed), told=told)
    if rises:
        answer = _up(turn, view, placed, load.weight, counted)
    elif wanted - counted > ROUNDING:
        answer = _borne(turn, view, load.weight)
    else:
        answer = _sleep(turn, view) or _down(turn, view, load, window)
    return replace(answer, told=(*told, *answer.told))


def _unsaid(turn: Turn, view: Asked, gate: Gate, load: Load) -> Answer:
    """Nothing says that fewer replicas would do, so all that are asked for stay asked for. More may be, by those who wait at the gateway."""
    weight, law = load.weight, turn.law
    placed = placing(turn, view.memory, least=turn.there)
    queued = waking(load, law) or 0.0
    # However late they are, as further ones would be as late.
    coming = supply_of(turn.role, weight, turn.now, credit_s=math.inf, unplaced_s=law.unplaced_s)
    rises = queued - coming.counted > ROUNDING
    view = replace(view, memory=_over(placed.memory, rises, turn))
    told = (gate.told, *telling.stuck(turn.role, placed))
    if placed.withdrawn:
        return replace(_withdrawn(turn, view, placed), told=told)
    bound = bounded.into_bounds(turn, view.memory, told=told)
    if bound is not None:
        return bound
    if rises:
        owed = replace(view, wanted=queued, sought=queued, need=replace(view.need, gateway=queued))
        more = _up(turn, owed, placed, weight, coming.counted)
        return replace(more, told=(*told, *more.told))
    if (slept := _sleep(turn, view)) is not None:
        return replace(slept, told=told)
    lost = _lost(turn, view)
    units = sum(weight[name] * count for name, count in lost.items())
    answer = _in_place(turn, view, placed, weight, lost=lost, units=units)
    if answer is not None:
        return replace(answer, told=told)
    message = (
        "no replica that is ready says what is needed"
        if load.supply.ready
        else "no replica is ready yet to say what is needed"
    )
    return turn.answer(view.memory, wanted=turn.there, reason="NoSignals", message=message, told=told)


def _up(turn: Turn, view: Asked, placed: Placing, weight: Mapping[str, float], counted: float) -> Answer:
    memory, there, wanted = view.memory, turn.there, whole_replicas(view.wanted or 0.0)
    rising = 0.0 if memory.over_since is None else turn.now - memory.over_since
    says = telling.figures(turn.role, view.need)
    hurry = view.panic and not forecast.is_fresh_step(memory.load, turn.now)
    if not hurry and rising < turn.situation.up_window_s:
        message = f"{says}, for {rising:.0f} of {turn.situation.up_window_s:.0f} seconds"
        return turn.answer(memory, wanted=wanted, reason=RISING, message=message, need=view.need)
    short = (view.sought or 0.0) - counted
    if turn.units(weight) > counted + ROUNDING:
        says += f"; not all of the {there} count, as some are late, have failed, find no node or are on one that does not answer"
    units, lost = min(short, float(max(there, turn.law.ups_beyond))), _lost(turn, view)
    barred = dict.fromkeys(_barred(turn, view, lost), 0)

    def allot(failing: Mapping[str, int]) -> Allotment:
        most = turn.role.bounds.max
        return grown(
            turn.role, weight, units, most=most, blocked=placed.blocked, failing=failing, room=turn.room
        )

    allotted = allot({**placed.failing, **barred})
    if sum(allotted.replicas.values()) == there:
        answer = _in_place(turn, view, placed, weight, lost=lost, units=units)
        if answer is not None:
            return replace(answer, told=telling.unmet(turn.role, allotted, wanted))
        # While something else moves replicas, those that fail may be what it brings, and a further one would be too.
        moves = turn.situation.busy is not None
        again = {} if moves else tried_again(turn.role, turn.now, _failed_s(view, turn.law), turn.law)
        if placed.failing or again:
            # Where no other set has room for the load, one that is left alone may as well be tried.
            allotted = allot({**dict.fromkeys(placed.failing, 1), **barred, **again})
    taken = sum(allotted.replicas.values()) - there
    told = telling.unmet(turn.role, allotted, wanted)
    if allotted.limit is not None and not taken:
        message = f"{says}; no more can be had now"
        return turn.answer(
            memory, wanted=wanted, reason=allotted.limit, message=message, need=view.need, told=told
        )
    return turn.answer(
        replace(_regretting(memory, turn, view.need.lead_s), up_at=turn.now, over_since=None),
        replicas=allotted.replicas,
        wanted=wanted,
        reason="Panic" if hurry else "LoadRose",
        message=f"{there} to {there + taken} replicas: {says}",
        need=view.need,
        told=told,
    )


def _borne(turn: Turn, view: Asked, weight: Mapping[str, float]) -> Answer:
    """Somewhat more is wanted than counts, and nothing is started for it."""
    says = telling.figures(turn.role, view.need)
    wanted = whole_replicas(min(turn.units(weight), view.wanted or 0.0))
    message = f"{says}; up to {turn.law.up_beyond:.0%} more than there is starts nothing, while nothing is late and the load does not rise"
    return turn.answer(view.memory, wanted=wanted, reason="Enough", message=message, need=view.need)


def _failed_s(view: Asked, law: Law) -> float:
    """For how long a replica does not serve before it makes way for others: a start, and as long as a node is waited for."""
    return law.withdraw_s + view.need.lead_s


def _lost(turn: Turn, view: Asked) -> Mapping[str, int]:
    """Replicas of each set that have failed, or could not be made, for so long, where there is another set to take their place."""
    if len(turn.role.sets) < 2:
        return {}
    return failed(turn.role, view.memory, turn.now, _failed_s(view, turn.law))


def _barred(turn: Turn, view: Asked, lost: Mapping[str, int]) -> Collection[str]:
    """Sets that do not grow while replicas of them are lost."""
    return further_fail(turn.role, turn.now, _failed_s(view, turn.law)) if lost else ()


def _in_place(
    turn: Turn,
    view: Asked,
    placed: Placing,
    weight: Mapping[str, float],
    *,
    lost: Mapping[str, int],
    units: float,
) -> Answer | None:
    """Replicas that may serve, in place of some that are lost, where nothing else gives the load more; None where no other set has room for
    them, or something else moves replicas."""
    role, now, law = turn.role, turn.now, turn.law
    if not lost or turn.situation.busy is not None:
        return None
    after = in_place(
        role, weight, units, lost, blocked=placed.blocked, failing=placed.failing, room=turn.room
    )
    if after is None:
        return None
    gave = [name for name in lost if after[name] < turn.told[name]]
    says = f": {telling.figures(role, view.need)}" if view.wanted is not None else ""
    return turn.answer(
        replace(left_alone(view.memory, gave, now, law), up_at=now, over_since=None),
        replicas=after,
        wanted=turn.there if view.wanted is None else whole_replicas(view.wanted),
        reason="StartFailed",
        message=f"{telling.made_way(role, after, _failed_s(view, law))}{says}",
        need=view.need,
        action=Action.MOVE,
    )


def _sleep(turn: Turn, view: Asked) -> Answer | None:
    wake = turn.situation.zero
    if wake is None or turn.role.bounds.min > 0 or turn.situation.busy is not None:
        return None
    verdict = zero.may_sleep(wake, turn.role, view.memory, now=turn.now, lead=view.need.lead_s)
    if not verdict.answer:
        return None
    return turn.answer(
        replace(view.memory, zero_at=turn.now, down_at=turn.now),
        replicas=dict.fromkeys(turn.told, 0),
        wanted=0,
        reason="ScaledToZero",
        message=verdict.why,
        need=view.need,
        action=Action.ZERO,
    )


def _down(turn: Turn, view: Asked, load: Load, window: float) -> Answer:
    fewer = down(turn, view, load, window)
    says, wanted = telling.figures(turn.role, view.need), whole_replicas(view.wanted or 0.0)
    if fewer.passed is not None:
        says = f"{says}; {fewer.passed}"
    if fewer.why_not is not None:
        message = f"{says}; none is taken away: {fewer.why_not}"
        return turn.answer(
            view.memory,
            wanted=wanted,
            reason="Enough",
            message=message,
            need=view.need,
            early=fewer.early,
        )
    return turn.answer(
        replace(view.memory, down_at=turn.now),
        replicas=fewer.replicas,
        wanted=wanted,
        reason="LoadFell",
        message=f"{turn.there} to {sum(fewer.replicas.values())} replicas: {says}",
        need=view.need,
    )


def _withdrawn(turn: Turn, view: Asked, placed: Placing) -> Answer:
    count, moved = sum(placed.withdrawn.values()), sum(placed.moved.values())
    after = (
        f"{', '.join(f'{more} of {name}' for name, more in placed.moved.items())} in their place"
        if moved
        else f"{'it is' if count == 1 else 'they are'} asked for again later"
    )
    waited = min(
        one.waits_s(turn.law.withdraw_s, each.node_s)
        for each in turn.role.sets
        for one in each.replicas
        if each.name in placed.withdrawn and one.is_unplaced(turn.now, turn.law.withdraw_s, each.node_s)
    )
    return turn.answer(
        view.memory,
        replicas={
            name: told - placed.withdrawn.get(name, 0) + placed.moved.get(name, 0)
            for name, told in turn.told.items()
        },
        wanted=whole_replicas(view.wanted or 0.0),
        reason="GPUsUnavailable",
        message=f"{count} {'replica' if count == 1 else 'replicas'} found no GPUs for {waited / 60:.0f} minutes; {after}",
        need=view.need,
        action=Action.MOVE if moved == count else None,
    )


def _jumped(turn: Turn, memory: RoleMemory) -> bool:
    """Whether the last look was too long ago, or lies in the future; true at the very first tick too."""
    return not memory.looked_before(turn.now, turn.law.jump_s)


def _remembered(turn: Turn, before: RoleMemory) -> RoleMemory:
    memory = before.jumped(turn.now) if before.seen is not None and _jumped(turn, before) else before
    memory = learning.started(memory, turn.role, turn.law)
    ready = sum(each.ready for each in turn.role.sets)
    if memory.ready != ready:
        memory = replace(memory, ready=ready, changed=turn.now, since=turn.now)
    # Of an only set it is not noted: an older release could not read this memory any more, and no other set could have the places.
    unmade = [each.name for each in turn.role.sets if each.unmade] if len(turn.role.sets) > 1 else []
    return replace(
        memory,
        begun=turn.now if memory.begun is None else memory.begun,
        seen=turn.now,
        unmade_since={name: memory.unmade_since.get(name, turn.now) for name in unmade},
    )


def _watched(turn: Turn, memory: RoleMemory) -> RoleMemory:
    """The memory with what arrives now. It may not have been seen for long, as nobody says it of a deployment that sleeps."""
    steady, recent = turn.role.signals.arrivals_per_s, turn.role.signals.recent_arrivals_per_s
    if steady is None:
        return memory
    load = memory.load
    if load.at is not None and turn.now - load.at > turn.law.blind_ticks * turn.law.tick_s:
        load = load.unwatched()
    return replace(memory, load=forecast.observed(load, turn.now, steady, recent))


def _regretting(memory: RoleMemory, turn: Turn, lead: float) -> RoleMemory:
    """The memory before a step up: where that takes back a step down that was made just before, the regret is counted."""
    law, down_at = turn.law, memory.down_at
    if down_at is None or turn.now - down_at >= law.up_starts * lead:
        return memory
    if memory.up_at is not None and memory.up_at >= down_at:
        return memory
    return replace(memory, regrets=1 + memory.regrets_at(turn.now, law.regret_s), regretted_at=turn.now)


def _over(memory: RoleMemory, over: bool, turn: Turn) -> RoleMemory:
    """The memory with since when more is wanted than there is. That may have begun right after the look before, so it counts from then."""
    if not over:
        return memory if memory.over_since is None else replace(memory, over_since=None)
    return memory if memory.over_since is not None else replace(memory, over_since=turn.since)
