"""One that knows what will come, one start-up ahead: how few GPU-hours there could be.

It is given the work of every minute, in seconds of a replica, as the world really takes it; how full replicas may be is its
only parameter. It cannot know which client meets which replica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from typing import Final

from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.policies.base import View, Wish
from plimsoll.simulate.world import START_P90_S, World

BIN_S: Final = 60.0
AHEAD_S: Final = START_P90_S
KEEP_S: Final = 600.0
"""Nothing is let go that is wanted again within this."""


def work_of(arrivals: Arrivals, world: World) -> list[float]:
    """Replica-seconds of the requests that arrive in each minute, at a full batch or a full cache, whichever binds. Of prompts that are refused
    there are none, and of answers that are cut only those until then."""
    times, limits = world.times, world.limits
    longest, bins = limits.max_model_len, [0.0] * (int(arrivals.span_s // BIN_S) + 1)
    count = given_all = asked_all = 0
    for _, given, asked in _served(arrivals, longest):
        count, given_all, asked_all = count + 1, given_all + given, asked_all + asked
    if not count:
        return bins
    live = given_all / count + asked_all / count / 2
    batch = max(1, min(limits.max_num_seqs, int(0.9 * limits.blocks / limits.blocks_for(ceil(live)))))
    token = times.decode[batch] / batch + times.kv_token * live
    for at, given, asked in _served(arrivals, longest):
        bins[int(at // BIN_S)] += times.prompt(given) + asked * token
    return bins


def _served(arrivals: Arrivals, longest: int) -> Iterator[tuple[float, int, int]]:
    for at, given, asked in zip(arrivals.at, arrivals.inputs, arrivals.outputs, strict=True):
        if given < longest:
            yield at, given, min(asked, longest - given)


class Oracle:
    name = "oracle"
    histograms = False

    def __init__(
        self, work: Sequence[float], full: float = 0.7, replicas: Callable[[float], int] = ceil
    ) -> None:
        self.settings: Mapping[str, float] = {"full": full, "ahead_s": AHEAD_S, "keep_s": KEEP_S}
        self._wanted = [max(1, replicas(one / BIN_S / full)) for one in work]

    def decide(self, view: View) -> Wish | None:
        begin = int(view.now // BIN_S)
        ahead = max(self._wanted[begin : begin + ceil(AHEAD_S / BIN_S) + 1], default=1)
        kept = max(self._wanted[begin : begin + ceil((AHEAD_S + KEEP_S) / BIN_S) + 1], default=1)
        if ahead > view.told:
            return Wish(min(ahead, view.most), "Known", f"{ahead} are wanted within {AHEAD_S:.0f} s")
        if kept < view.told:
            return Wish(max(kept, view.least), "Known", f"no more than {kept} are wanted for a while")
        return None
