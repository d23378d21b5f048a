"""An operator that dies after each single write of what it knows of a retune: the next one takes it on, or back.

A proxy lets one write of the record through and refuses the next, and then the operator is killed, with all that only it knew. So one dies
in each state that is ever stored, whatever it did since for the replicas. A record tells which one it was.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from cluster.faults import WRITES, Answer, FaultProxy, Where
from common import LONG_SECONDS, eventually
from plimsoll.reconcile.kept import CONTROL_KEY
from rights import shipped
from turns.running import Desk, Operator
from turns.traffic import Traffic, stand_in
from turns.watching import operated

RETUNED: Final[dict[str, Any]] = {
    "topology": {"gpuProducts": ["H100-SXM-80GB"]},
    "workload": {"contextTokens": 8192},
    "engine": {"maxSequences": 64},
    "tuning": {"allow": ["maxSequences"]},
    "replicas": 2,
}
MOST_LIVES: Final = 100
"""Operators, of which a retune that goes on needs far fewer; one that does not would need them for ever."""
QUICK: Final = {"canarySeconds": 2, "canaryRequests": 200, "canaryLimitSeconds": 600}


@dataclass(frozen=True, slots=True)
class Ward:
    """What is watched: a resource, the load on it, and an operator whose writes may be refused."""

    desk: Desk
    traffic: Traffic
    proxy: FaultProxy
    operator: Operator

    def known(self) -> dict[str, Any]:
        """Of retunes, as the next operator will find it."""
        path = f"/api/v1/namespaces/{self.desk.namespace}/configmaps/chat-plan"
        text = self.desk.cluster.api.get(path)["data"].get(CONTROL_KEY, "{}")
        return dict(json.loads(text).get("retune") or {})

    def state(self) -> str:
        return str(self.known().get("step", {}).get("phase", ""))

    def over(self) -> bool:
        known = self.known()
        return bool(known.get("past")) and "step" not in known

    def lives_for_one_write(self) -> None:
        about = Where(verbs=WRITES, resources=["configmaps"], namespace=self.desk.namespace, name="chat-plan")
        with self.proxy.add(Answer(403), about, after=1) as refused:
            self.operator.start()
            assert eventually(lambda: refused.hits > 0 or self.over(), LONG_SECONDS), self.known()
            self.operator.stop(signal.SIGKILL)


@contextmanager
def ward(place: Desk, folder: Path) -> Iterator[Ward]:
    with place.cluster.proxy() as proxy:
        through = proxy.kubeconfig(shipped(place.cluster))
        with (
            operated(place.cluster, folder, [place.namespace], kubeconfig=through, restarts=QUICK) as (
                server,
                _,
                operator,
            ),
            Traffic(stand_in(server), place.pods) as traffic,
        ):
            yield Ward(place, traffic, proxy, operator)


@pytest.mark.parametrize(("helps", "states"), [
    (True, ("Planned", "Canary", "Judging", "Rolling", "Verifying", "Done")),
    (False, ("Planned", "Canary", "Judging", "RollingBack")),
])  # fmt: skip
def test_a_retune_ends_as_it_should_though_an_operator_dies_in_each_of_its_states(
    place: Desk, tmp_path: Path, helps: bool, states: tuple[str, ...]
) -> None:
    with ward(place, tmp_path) as it:
        place.apply(**RETUNED)
        assert place.says("Ready", "True", "Serving")
        assert it.operator.rests()
        it.operator.stop()
        (served,) = place.deployments()
        died: list[str] = []

        def preempted(pod: dict[str, Any]) -> float:
            return 0.0 if helps and not pod["metadata"]["name"].startswith(served) else 0.3

        it.traffic.preempted = preempted
        it.traffic.inflight, it.traffic.seconds = 120, 0.5
        while not it.over():
            assert len(died) < MOST_LIVES, died
            it.lives_for_one_write()
            died.append(it.state())
        assert set(states) <= set(died), died
        it.operator.start()
        assert place.says("Ready", "True", "Serving")
        (past,) = it.known()["past"]
        assert past["outcome"] == ("Done" if helps else "Failed"), past
        assert eventually(lambda: list(place.deployments().values()) == [2])
        (serves,) = place.deployments()
        assert (serves != served) == helps
        value = past["after"] if helps else past["before"]
        # Those of a set that is gone may still be ending.
        assert eventually(lambda: sequences(place) == [value, value]), sequences(place)


def sequences(place: Desk) -> list[str]:
    """That each pod's engine is told to run at once."""
    told = [pod["spec"]["containers"][0]["args"] for pod in place.pods()]
    return [args[args.index("--max-num-seqs") + 1] for args in told]
