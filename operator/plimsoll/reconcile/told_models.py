"""What is known of models that only a pod of their owner's may read, and which such pods should be there. Pure.

A pod that has ended is the record of its reading until what it told is kept with the pinned plan; so nothing is read twice, and
nothing is lost between two writes. An outage is tried again, later and later; a mistake waits for the person who can cure it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from plimsoll import names
from plimsoll.api.conditions import FAILURES
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.model_told import ModelTellingUnreadable, read_model
from plimsoll.facts.serving import Stage
from plimsoll.kube.facts_pods import FactsPod
from plimsoll.planning.planner import PlanFacts
from plimsoll.reconcile.kept import KeptModel
from plimsoll.reconcile.models import Found, Missing, plan_facts
from plimsoll.render.facts_pod import AskedModel
from plimsoll.status.pod_words import words_of

RETRIES: Final = (60.0, 600.0, 3600.0)
"""Seconds until a reading that an outage ended is tried again; the last of them from then on."""
OUTAGES: Final = frozenset({"Download"})
"""Failures, in the supervisor's words, that no edit of the spec cures, and that pass by themselves."""
MOST_KEPT: Final = 4
"""Answers that are kept: those of earlier models too, so that who goes back to an earlier spec finds its models known."""
AGAIN: Final = (
    f"edit the spec, or set the annotation {names.ANNOTATION_REPLAN} to a new value, to have it read again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPod:
    """A pod that should be made, to read one model."""

    asked: AskedModel
    ticket: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReadings:
    facts: PlanFacts
    kept: tuple[KeptModel, ...] = ()
    wanted: tuple[WantedPod, ...] = ()
    over: tuple[FactsPod, ...] = ()
    """Pods that are not needed any more, and may be deleted."""
    answered: tuple[tuple[KeptModel, FactsPod], ...] = ()
    """Pods that have answered, each with its answer: they may go once that is kept."""
    anew: bool = False
    """By a new answer a model is not what was known of it, so the plan has to be made anew with that."""
    again_seconds: float | None = None
    """In how many seconds a reading that failed is tried again; None where none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """How the reading of one model stands; its fields are those of ModelReadings, for one model."""

    found: Found
    reading: str | None = None
    """Who reads it now, in a sentence; None where nobody does."""
    wanted: WantedPod | None = None
    kept: KeptModel | None = None
    answered: FactsPod | None = None
    anew: bool = False
    again_seconds: float | None = None


def told_models(
    found: Mapping[str, Found],
    readable: Mapping[str, AskedModel],
    *,
    kept: tuple[KeptModel, ...],
    pods: Sequence[FactsPod],
    replan: str,
    paused: bool,
    now: float,
) -> ModelReadings:
    """What is known of each model of a spec, with what its namespace's pods have told, and what to do about those pods.

    `found` is what the operator itself knows, and `readable` what a pod could be asked for, both by the field of the spec that names
    the model. `replan` is the value of the annotation by which a person asks for everything anew.
    """
    known, ones, tickets = dict(found), dict[str, _Reading](), set[str]()
    for field, one in found.items():
        asked = readable.get(field)
        if asked is None or not isinstance(one, Missing):
            continue
        ticket = _ticket(asked, replan)
        mine = sorted((pod for pod in pods if pod.ticket == ticket), key=lambda pod: pod.attempt)
        told = _reading(asked, ticket, kept=kept, pods=mine, again=bool(replan), paused=paused, now=now)
        if not one.elsewhere:
            # Where a hub does not answer, a pod would get no answer either; but what pods told before holds all the same.
            told = _Reading(found=one) if isinstance(told.found, Missing) else replace(told, wanted=None)
        ones[field], known[field] = told, told.found
        if mine and (
            told.kept is None or (replan and told.kept.ticket != ticket) or told.answered is not None
        ):
            tickets.add(ticket)
    newest = {ticket: max(pod.attempt for pod in pods if pod.ticket == ticket) for ticket in tickets}
    used = [one.kept for one in ones.values() if one.kept is not None]
    others = [one for one in kept if one.asked not in {each.asked for each in used}]
    return ModelReadings(
        facts=plan_facts(known, {field: one.reading for field, one in ones.items() if one.reading}),
        kept=(*used, *others)[:MOST_KEPT],
        wanted=tuple(one.wanted for one in ones.values() if one.wanted is not None),
        over=tuple(pod for pod in pods if not pod.leaving and pod.attempt != newest.get(pod.ticket)),
        answered=tuple(
            (one.kept, one.answered)
            for one in ones.values()
            if one.kept is not None and one.answered is not None
        ),
        anew=any(one.anew for one in ones.values()),
        again_seconds=min(
            (one.again_seconds for one in ones.values() if one.again_seconds is not None), default=None
        ),
    )


def _ticket(asked: AskedModel, replan: str) -> str:
    """Names one reading: it changes with what is asked, and when a person asks again."""
    return hashlib.sha256(f"{asked.digest} {replan}".encode()).hexdigest()[:16]


def _reading(
    asked: AskedModel,
    ticket: str,
    *,
    kept: tuple[KeptModel, ...],
    pods: Sequence[FactsPod],
    again: bool,
    paused: bool,
    now: float,
) -> _Reading:
    """From what is kept, else from the pods. Where a person asked again, what is kept holds until the new answer is there."""
    stands = next((one for one in kept if one.asked == asked.digest), None)
    before = None if stands is None else _facts(stands)
    if stands is None or before is None or isinstance(before, Missing):
        return _asking(asked, ticket, pods=pods, paused=paused, now=now)
    if stands.ticket == ticket or not again:
        return _Reading(found=before, kept=stands)
    new = _asking(asked, ticket, pods=pods, paused=paused, now=now)
    if isinstance(new.found, Missing):
        return replace(new, found=before, kept=stands, reading=None)
    return replace(new, anew=new.found != before)


def _asking(
    asked: AskedModel, ticket: str, *, pods: Sequence[FactsPod], paused: bool, now: float
) -> _Reading:
    if not pods:
        return _unread(asked, ticket, paused=paused)
    pod = pods[-1]
    if pod.told is not None:
        answer = KeptModel(
            asked=asked.digest,
            source=asked.source,
            revision=asked.revision,
            text=pod.told,
            ticket=ticket,
        )
        facts = _facts(answer)
        if isinstance(facts, Missing):
            return _Reading(found=Missing(f"{facts.problem}; {AGAIN}"))
        return _Reading(found=facts, kept=answer, answered=pod)
    if not pod.ended:
        return _under_way(asked, pod)
    return _failed(asked, ticket, pod, paused=paused, now=now)


def _unread(asked: AskedModel, ticket: str, *, paused: bool) -> _Reading:
    if paused:
        text = f"{asked.source} is read by a pod of this namespace once spec.paused is no longer true"
        return _Reading(found=Missing(text), reading=text)
    text = f"a pod of this namespace is made to read {asked.source}"
    return _Reading(
        found=Missing(text), reading=text, wanted=WantedPod(asked=asked, ticket=ticket, attempt=1)
    )


def _under_way(asked: AskedModel, pod: FactsPod) -> _Reading:
    words = words_of(pod.seen)
    if words is not None and pod.seen.stage is Stage.FAILED:
        return _Reading(found=Missing(f"{asked.source} cannot be read yet: {words.sentence}"))
    text = f"{pod.seen.name} reads {asked.source}" + (f": {words.sentence}" if words is not None else "")
    return _Reading(found=Missing(text), reading=text)


def _failed(asked: AskedModel, ticket: str, pod: FactsPod, *, paused: bool, now: float) -> _Reading:
    failure = pod.seen.failure
    if failure is not None:
        helps = f"; {failure.remedy}" if failure.remedy else ""
        text = f"{pod.seen.name} could not read {asked.source} ({failure.word}): {failure.message}{helps}"
    else:
        said = f": {pod.seen.message}" if pod.seen.message else ""
        reason = pod.seen.reason or ("Deleted" if pod.leaving else "Error")
        text = f"{pod.seen.name}, which reads {asked.source}, ended ({reason}){said}"
    if failure is not None and failure.word in FAILURES and failure.word not in OUTAGES:
        return _Reading(found=Missing(f"{text}; {AGAIN}"))
    left = pod.ended + RETRIES[min(pod.attempt, len(RETRIES)) - 1] - now
    if left > 0:
        return _Reading(found=Missing(f"{text}; it is tried again by itself"), again_seconds=left)
    if paused:
        return _Reading(found=Missing(f"{text}; it is tried again once spec.paused is no longer true"))
    return _Reading(
        found=Missing(text),
        reading=f"{text}; it is tried again now",
        wanted=WantedPod(asked=asked, ticket=ticket, attempt=pod.attempt + 1),
    )


def _facts(kept: KeptModel) -> ModelFacts | Missing:
    return _read(kept.text, kept.source, kept.revision)


@lru_cache(256)
def _read(text: str, source: str, revision: str | None) -> ModelFacts | Missing:
    """The same value for every turn: a message is unpacked once."""
    try:
        return read_model(text, source=source, revision=revision)
    except ModelTellingUnreadable as error:
        return Missing(str(error))
