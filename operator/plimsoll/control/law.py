"""The numbers of the control law, in one place and in code: a missing file can never make a threshold zero.

Each is a share, a time in seconds or a count. They are handed in, so that a simulation can sweep them; the operator has no
setting for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

UP_WINDOW_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    target: float = 0.70
    """Share of a replica's pool, or of the requests that it carries within its limits, that is aimed at."""
    down_target: float = 0.60
    """The same after replicas were taken away: the gap between the two keeps the number still."""
    busy: float = 0.95
    """Share of a replica's highest rate that a burst may take: beyond it queues grow whatever runs."""
    down_busy: float = 0.85
    burst_sigmas: float = 2.0
    """Standard deviations of half a minute's arrivals that there must be room for."""
    forecast_target: float = 0.90
    """Aimed at where the forecast's own error is known and added to it."""
    coverage_least: float = 0.5
    """Share of ready replicas that must speak before anything is decided."""
    tick_s: float = 15.0
    payback_s: float = 90.0
    """In which a queue is to be worked off, by replicas that may be full meanwhile."""
    correction: float = 1.3
    """By how much requests in flight alone may ask for more than there is, where the rate of arrivals says less."""
    up_beyond: float = 0.10
    """Share of what there is by which more may be wanted before anything is started, while nothing is late and the load does not rise by as
    much within a start-up: one that wavers about a whole number would have a replica come and go."""
    ups_beyond: int = 4
    """In one step replicas may double, or grow by so many where that is more."""
    down_window_s: float = 450.0
    down_share: float = 0.50
    """Of the replicas that a whole window did not ask for, taken away in one step."""
    down_again_s: float = 120.0
    """At least between a step down and the next: by then rates show what those that are left carry."""
    down_starts: float = 1.0
    """Start-ups that the window is long, where that is more."""
    down_eased: float = 0.5
    """Share of the window that is not waited for where for hours no first token was late."""
    up_starts: float = 2.0
    """Start-ups for which what was asked for stays, whatever is wanted: what goes sooner was started for nothing."""
    regret_windows: float = 0.5
    """Each step down that was soon taken back makes the window longer by this share of itself."""
    regrets_most: float = 10.0
    regret_s: float = 43_200.0
    """In which such a step comes to count for a third."""
    down_latency: float = 0.7
    """Share of a latency limit that must not be passed when something is taken away."""
    lasting_most: float = 1.25
    """Times the latency that is expected beside a few requests, up to which one is not the load's doing."""
    alert_kv: float = 0.85
    """Share of the pools in use from which an alert says so; where one would fire nothing is taken away."""
    alert_waiting: float = 8.0
    alert_queue: float = 0.5
    """Waiting for each running request, from which a queue of more than so many is one that alerts tell of."""
    slow_s: float = 60.0
    """How long a limit must be passed before more replicas are asked for."""
    slow_most: float = 2.0
    latency_most: float = 1.25
    """By how much a latency alone asks for more: near its limit it grows many times faster than the load."""
    busy_kv: float = 0.5
    """Below this, with no queue and no preemption, bad latency at few requests is not cured by more replicas."""
    busy_share: float = 0.25
    """Requests in flight, as a share of what a replica is planned to carry, up to which they are few."""
    panic_kv: float = 0.95
    panic_waiting: float = 8.0
    healthy_preempted: float = 0.01
    """Preemptions for each finished request that are no sign of anything."""
    start_first_s: float = 180.0
    start_least_s: float = 30.0
    start_most_s: float = 1800.0
    credit_starts: float = 2.0
    """Start-up times, of which nine in ten are shorter, for which a starting replica counts as good as ready."""
    credit_owing: float = 1.0
    """The same while requests queue: one that is late already may be the one of many that takes twenty minutes."""
    unplaced_s: float = 120.0
    """A replica that no node takes for so long shows that there is no room for more."""
    withdraw_s: float = 600.0
    retry_first_s: float = 60.0
    retry_most_s: float = 1800.0
    retry_failed_most_s: float = 86_400.0
    """For how long a set is left alone at most that has failed again and again: load comes in waves, and each would try it once more."""
    blind_ticks: float = 2.0
    """After more ticks without metrics, or with a number that a person holds, than this the window for a step down begins anew."""
    outage_s: float = 1800.0
    """Without metrics for so long, it is told of once more."""
    jump_s: float = 600.0
    """Two ticks further apart than this, or in the wrong order: the clock jumped or nobody was awake."""

    def is_alarming(self, waiting: float, running: float) -> bool:
        """A queue that alerts tell of."""
        return waiting > max(self.alert_waiting, self.alert_queue * running)


LAW: Final = Law()
"""As the operator goes by it, where its interval is the usual one."""


def up_window_s(asked: int | None, tick_s: float) -> float:
    """How long more must be wanted: as somebody set it, else long enough for two looks to show it."""
    return max(UP_WINDOW_S, 2 * tick_s) if asked is None else float(asked)
