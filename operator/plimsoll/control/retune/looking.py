"""What is seen of a change at one look: counts of its phase, and what they say beside those of the replicas without it."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Final

from plimsoll.control.retune.figures import figures_of
from plimsoll.control.retune.judging import Answer, Verdict, comparable, judge, under_another_load
from plimsoll.control.retune.scene import Scene
from plimsoll.control.retune.steps import Phase, Step
from plimsoll.control.signals import LATENCY_S

LASTS_SHARE: Final = 2 / 3
"""Of the time that a canary is watched, for what one slow minute makes as well. By default that is 400 seconds: latencies look back 300, so
that a slow minute is seen for 360, and a little longer as looks lie apart."""


def counted(scene: Scene, step: Step) -> Step:
    if not scene.data:
        return step
    return replace(
        step,
        new=step.new.plus(scene.window, scene.changed_signals),
        old=step.old.plus(scene.window, scene.signals),
    )


def verdict_of(scene: Scene, step: Step) -> Verdict:
    """Beside untouched replicas while there are any, else beside what was written down, under a like load."""
    if scene.changed is None or scene.changed_signals is None:
        return Verdict(Answer.OPEN, "no replica with the change is seen")
    new = figures_of(scene.changed_signals, scene.slo, scene.window, since=step.since).over(step.new)
    gpus = scene.changed.gpus / scene.serving.gpus if scene.serving.gpus else 1.0
    if scene.signals.replicas and step.phase is not Phase.VERIFYING:
        old = figures_of(scene.signals, scene.slo, scene.window, since=step.since).over(step.old)
        return judge(step.symptom, new, old, scene.slo, gpus=gpus)
    before = step.baseline
    if scene.now - step.since < LATENCY_S or (new.queues and before.queues):
        # Whole answers of these minutes began before, perhaps while a replica was away and others had its load. And where more came
        # before than was done, and still does, they take as long as the queue has grown since, whatever was changed.
        before = replace(before, e2e_p99=None)
    if comparable(new, before):
        return judge(step.symptom, new, before, scene.slo, gpus=gpus)
    return under_another_load(new, before, scene.slo, gpus)


def lasts(scene: Scene, step: Step) -> bool:
    """What may pass has to be there for longer than a slow minute is seen."""
    return step.worse is None or scene.now - step.worse >= LASTS_SHARE * scene.restarts.canary_seconds


def unwatched(scene: Scene, step: Step) -> bool:
    """Whether some of those with the change are not heard, or nobody has looked at them for any time of this phase."""
    return scene.changed_signals is None or scene.changed_signals.silent > 0 or not step.new.seconds


def lacks_requests(step: Step) -> bool:
    """Whether the canary lacks more requests than chance takes from it."""
    expected = step.old.finished / step.old.seconds * step.new.seconds if step.old.seconds > 0 else 0.0
    return expected - step.new.finished > 2 * sqrt(expected)
