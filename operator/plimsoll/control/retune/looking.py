"""What one look shows of a change: what was counted in this phase, held against the replicas without the change."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Final

from plimsoll.control.retune.figures import Figures, figures_of
from plimsoll.control.retune.judging import (
    LOAD_APART,
    Answer,
    Verdict,
    comparable,
    judge,
    under_another_load,
)
from plimsoll.control.retune.scene import Scene
from plimsoll.control.retune.steps import Phase, Step
from plimsoll.control.signals import LATENCY_S

LASTS_SHARE: Final = 2 / 3
"""How long something bad must last that a single slow minute would do too, as a share of the time that a canary is watched. By default that
is 400 seconds: latencies look back 300, so a slow minute is seen for 360, and a little longer as looks lie apart."""


def counted(scene: Scene, step: Step) -> Step:
    """The step with what both kinds of replicas have counted since the last look."""
    if not scene.data:
        return step
    return replace(
        step,
        new=step.new.plus(scene.window, scene.changed_signals),
        old=step.old.plus(scene.window, scene.signals),
    )


def verdict_of(scene: Scene, step: Step) -> Verdict:
    """Held against replicas without the change while there are any, else against the baseline, where the load is about the same."""
    if not scene.data:
        return Verdict(Answer.OPEN, "metrics are missing", unknown=True)
    if scene.changed is None or scene.changed_signals is None:
        return Verdict(Answer.OPEN, "no replica with the change is seen", unknown=True)
    new = figures_of(scene.changed_signals, scene.slo, scene.window, since=step.since).over(step.new)
    gpus = scene.changed.gpus / scene.serving.gpus if scene.serving.gpus else 1.0
    if scene.signals.replicas and step.phase is not Phase.VERIFYING:
        old = figures_of(scene.signals, scene.slo, scene.window, since=step.since).over(step.old)
        verdict = judge(step.symptom, new, old, scene.slo, gpus=gpus)
        if verdict.answer is not Answer.BAD or not _looks_back_too_far(scene, step):
            return verdict
        shown = judge(step.symptom, new, old.without_latencies, scene.slo, gpus=gpus)
        return shown if shown.answer is Answer.BAD else replace(verdict, answer=Answer.OPEN)
    if scene.unchanged and step.phase is not Phase.VERIFYING:
        # They are there, so the same minutes will be told of again. Those of the baseline were others.
        return Verdict(Answer.OPEN, "no replica without the change is heard", unknown=True)
    before = step.baseline
    if scene.now - step.since < LATENCY_S or (new.queues and before.queues):
        # Whole answers cannot be compared yet. They began before this phase, perhaps while a replica was away and the others had its load;
        # and where more comes than is done, before as now, they take ever longer with the queue, whatever was changed.
        before = replace(before, e2e_p99=None)
    slo = scene.slo
    if _falls_behind(scene, new, before):
        slo, before = replace(slo, ttft_p99_s=None), replace(before, kept=None)
    if comparable(new, before):
        return judge(step.symptom, new, before, slo, gpus=gpus)
    return under_another_load(new, before, slo, gpus)


def _falls_behind(scene: Scene, new: Figures, before: Figures) -> bool:
    """Whether more comes than all replicas do, before as now. First tokens were late then already, and are ever later with the queue,
    whatever was changed. A queue alone does not show that: where as many come as end, a change may have moved waiting in front of the
    first token."""
    promised, seen = scene.slo.ttft_p99_s, scene.changed_signals
    if promised is None or seen is None or before.ttft_p99 is None or before.ttft_p99 <= promised:
        return False
    came, ended = seen.sum("arrived"), (seen.sum("finished") or 0.0) + (seen.sum("errors") or 0.0)
    return new.queues and before.queues and came is not None and came > (1 + LOAD_APART) * ended


def _looks_back_too_far(scene: Scene, step: Step) -> bool:
    """Whether latencies of the replicas without the change are in part of minutes before there was one with it. What such minutes were like
    speaks against no change: fewer engines may have shared a machine, and a new one warms up."""
    return step.phase is Phase.JUDGING and scene.now - step.since < LATENCY_S


def noted(scene: Scene, step: Step, verdict: Verdict) -> Step:
    """The step with since when every look has found it worse in a way that may pass."""
    worse = (scene.now if step.worse is None else step.worse) if verdict.passing else None
    return replace(step, worse=worse)


def lasts(scene: Scene, step: Step) -> bool:
    """Whether what may pass has been bad for longer than a single slow minute is seen."""
    return step.worse is None or scene.now - step.worse >= LASTS_SHARE * scene.restarts.canary_seconds


def unwatched(scene: Scene, step: Step) -> bool:
    """Whether a replica with the change does not say how it is, or none was watched yet in this phase."""
    return scene.changed_signals is None or scene.changed_signals.silent > 0 or not step.new.seconds


def lacks_requests(step: Step) -> bool:
    """Whether the canary was sent fewer requests than the others, by more than chance."""
    expected = step.old.finished / step.old.seconds * step.new.seconds if step.old.seconds > 0 else 0.0
    return expected - step.new.finished > 2 * sqrt(expected)
