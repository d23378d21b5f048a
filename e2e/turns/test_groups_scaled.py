"""Replicas of several pods over nodes, as many as their load asks for: they are counted in groups, and groups come and go whole."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any, Final

from cluster import Cluster
from cluster.api import Object
from common import LONG_SECONDS, eventually
from plimsoll import names
from turns.crashes import LARGE, WIDE
from turns.grouping import LWS_GROUP, SETS, Groups
from turns.running import Desk
from turns.test_scaling import history
from turns.traffic import Traffic, stand_in
from turns.watching import SCALED, operated

MOST: Final = 3
GROUPED: Final[dict[str, Any]] = {
    **SCALED,
    "model": LARGE,
    "topology": {**WIDE, "groups": "LeaderWorkerSet"},
    "scaling": {**SCALED["scaling"], "max": MOST},
}
MUCH: Final = 150.0
"""Enough for more groups than there may be."""


def leaders(place: Desk) -> list[Object]:
    """Those that answer, and so those that say how much they have to do."""
    return [one for one in place.pods() if one["metadata"]["labels"][names.LABEL_LEADER] == "true"]


def groups(place: Desk) -> int:
    """Those that are asked for."""
    return sum(one["spec"]["replicas"] for one in place.items(SETS))


def pods_by_group(place: Desk) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in place.pods():
        found.setdefault(one["metadata"]["labels"][LWS_GROUP], set()).add(one["metadata"]["uid"])
    return found


def whole(place: Desk, count: int) -> bool:
    """Whether so many groups of two pods are there, and nothing else."""
    return sorted(map(len, pods_by_group(place).values())) == [2] * count


def test_groups_follow_the_load_as_one_replica_each_through_operators_that_are_killed(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    lab.install_others("leaderworkerset")
    with (
        operated(lab, tmp_path, [place.namespace]) as (server, prom, operator),
        Groups(place),
        Traffic(stand_in(server), lambda: leaders(place)) as traffic,
    ):
        traffic.inflight = 2
        place.apply(**GROUPED)
        assert place.says("Ready", "True", "Serving", patience=LONG_SECONDS), operator.tail()
        assert place.says("MetricsAvailable", "True", "Fresh", patience=LONG_SECONDS)
        assert (groups(place), whole(place, 1)) == (1, True)
        served = pods_by_group(place)
        traffic.inflight = MUCH
        assert eventually(lambda: groups(place) > 1, LONG_SECONDS), operator.tail()
        operator.stop(signal.SIGKILL)
        operator.start()
        assert eventually(lambda: groups(place) == MOST, LONG_SECONDS), operator.tail()
        assert eventually(lambda: whole(place, MOST), LONG_SECONDS)
        assert place.says("Ready", "True", "Serving", patience=LONG_SECONDS)
        assert place.says("ScalingLimited", "True", "AtMax", patience=LONG_SECONDS)
        assert place.says("MetricsAvailable", "True", "Fresh", patience=LONG_SECONDS)
        assert eventually(lambda: place.get()["status"]["ready"] == f"{MOST}/{MOST}", LONG_SECONDS)
        (told,) = place.get()["status"]["sets"]
        assert (told["replicas"], told["ready"]) == (MOST, MOST), "groups, and not pods"
        asked = {one["metadata"]["name"] for one in leaders(place)}
        # Prometheus finds a pod some seconds after it is ready, and half of those that serve are enough to decide by.
        assert eventually(lambda: {one["labels"]["pod"] for one in prom.targets()} == asked), (
            "nobody else is asked"
        )

        traffic.inflight = 1
        assert eventually(lambda: groups(place) < MOST, LONG_SECONDS), operator.tail()
        operator.stop(signal.SIGKILL)
        operator.start()
        assert eventually(lambda: groups(place) == 1, LONG_SECONDS), operator.tail()
        assert eventually(lambda: pods_by_group(place) == served, LONG_SECONDS), "the first one serves on"
        assert place.says("Ready", "True", "Serving", patience=LONG_SECONDS)
        assert eventually(lambda: place.get()["status"]["ready"] == "1/1", LONG_SECONDS)
        ticks = operator.metric("plimsoll_control_ticks_total")
        assert eventually(lambda: operator.metric("plimsoll_control_ticks_total") >= ticks + 10, LONG_SECONDS)
        assert (groups(place), pods_by_group(place)) == (1, served)
        decisions = [one for one in reversed(history(place)["decisions"]) if one["what"] == "scale"]
        numbers = [int(one["after"]) for one in decisions]
        assert numbers[-1] == 1
        assert numbers.index(MOST) == max(range(len(numbers)), key=lambda at: (numbers[at], -at))
        assert {one["reason"] for one in decisions} <= {"LoadRose", "Panic", "LoadFell"}
