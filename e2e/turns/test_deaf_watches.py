"""Watches that stay open and say nothing any more, as behind a network that drops what it carries without a word to either side."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.faults import FaultProxy, Rule, SilenceWatch, Where
from common import LONG_SECONDS, eventually
from plimsoll import names
from turns.crashes import SMALL
from turns.hasty import hasty
from turns.running import Desk, Operator
from turns.test_hostile import answers
from turns.test_outages import is_over, through

HEARD: Final = {names.PLURAL: 2, "deployments": 1, "pods": 1}
"""What is watched, and by how many: LLMDeployments by kopf, and by ourselves for what kopf misses."""
NEVER: Final = 3600.0
SILENCE_SECONDS: Final = 8.0
"""Longer than a stream must last so that its end is nothing unusual."""
RELIST_SECONDS: Final = 4.0
DEAF_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Ground:
    place: Desk
    operator: Operator
    proxy: FaultProxy
    deployed: str
    """The uid of the Deployment that a hand will delete."""

    @contextmanager
    def deafened(self) -> Iterator[None]:
        """Each watch that has anything to tell falls silent for good, those that are opened in the body too. What they have to tell
        first is that one resource is edited, and that another one's child is deleted."""
        with ExitStack() as stack:
            struck = {resource: stack.enter_context(self._silence(resource)) for resource in HEARD}
            self.place.apply("edited", topology=SMALL, replicas=2)
            name = deployment_of(self.place, "robbed")["name"]
            self.place.cluster.api.delete(
                f"/apis/apps/v1/namespaces/{self.place.namespace}/deployments/{name}"
            )
            assert eventually(lambda: all(struck[each].hits >= many for each, many in HEARD.items()))
            yield

    def _silence(self, resource: str) -> Rule:
        return self.proxy.add(SilenceWatch(), Where(verbs=("watch",), resources={resource}))

    def is_good(self) -> bool:
        """Whether both are as they were asked for."""
        again = deployment_of(self.place, "robbed").get("uid", self.deployed) != self.deployed
        return again and is_over(self.place, "edited", 2) and is_over(self.place, "robbed", 1)


@contextmanager
def ground(place: Desk, folder: Path, program: tuple[str, ...]) -> Iterator[Ground]:
    with through(place.cluster, folder, program) as (operator, proxy):
        for name in ("edited", "robbed"):
            place.apply(name, topology=SMALL)
        for name in ("edited", "robbed"):
            assert place.says("Ready", "True", "Serving", name, patience=LONG_SECONDS), operator.tail()
        assert operator.rests()
        yield Ground(place, operator, proxy, deployment_of(place, "robbed")["uid"])


def deployment_of(place: Desk, name: str) -> dict[str, str]:
    """Its metadata; empty where there is none."""
    found = (one["metadata"] for one in place.items("apps/v1/deployments"))
    return next((one for one in found if one["labels"][names.LABEL_DEPLOYMENT] == name), {})


def ill(operator: Operator) -> str:
    """What is wrong with the process by its own word; empty where nothing is."""
    try:
        assert answers(operator, "/healthz") == (200, "ok")
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()
    return ""


def test_watches_that_fall_silent_are_opened_anew_and_tell_what_was_kept_from_them(
    place: Desk, tmp_path: Path
) -> None:
    """Nothing is listed again meanwhile, so that only the new watches can have told it."""
    with ground(place, tmp_path, hasty(silence=SILENCE_SECONDS, relist=NEVER)) as it:
        with it.deafened():
            assert not it.is_good()
        assert eventually(it.is_good), it.operator.tail()
        assert "never told" not in it.operator.log.read_text()
        assert ill(it.operator) == ""


def test_where_new_watches_are_silent_too_all_is_found_by_looking_and_a_process_that_stays_deaf_is_told_as_ill(
    place: Desk, tmp_path: Path
) -> None:
    with ground(place, tmp_path, hasty(relist=RELIST_SECONDS, deaf=DEAF_SECONDS)) as it, it.deafened():
        assert eventually(it.is_good), it.operator.tail()
        assert "a change was never told" in it.operator.log.read_text()
        it.place.apply("robbed", topology=SMALL, replicas=2)
        assert eventually(lambda: is_over(it.place, "robbed", 2)), it.operator.tail()
        assert eventually(lambda: "only found by looking" in ill(it.operator))
