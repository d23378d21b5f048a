"""What the source of metrics did not answer, and why: told in the log once while it stays, and with the condition of whoever misses it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from plimsoll.reconcile.loop.sources import Looked, pod_key
from plimsoll.reconcile.loop.tick import Case

LOG: Final = logging.getLogger(__name__)
NEEDED: Final = ("ages", "load")
"""Questions without whose answer nobody knows how many requests a replica has."""
NAMED: Final = 3
"""In a line of the log: a NetworkPolicy that is wrong keeps hundreds of pods from being read."""


class Unanswered:
    def __init__(self) -> None:
        self._reachable = True
        self._problem = ""
        self._errors: Mapping[str, str] = {}

    def tell(self, looked: Looked) -> None:
        if looked.problem and looked.problem != self._problem:
            LOG.warning("the source of metrics does not answer: %s", looked.problem)
        elif looked.reachable and not self._reachable:
            LOG.info("the source of metrics answers again")
        self._reachable, self._problem = looked.reachable, looked.problem
        if looked.reachable:
            for line in _new(looked.errors, self._errors):
                LOG.warning("%s", line)
            self._errors = looked.errors


def _new(errors: Mapping[str, str], before: Mapping[str, str]) -> Iterator[str]:
    """A line for each reason that something has failed for since."""
    alike: dict[str, list[str]] = {}
    for what, why in sorted(errors.items()):
        if before.get(what) != why:
            alike.setdefault(why, []).append(what)
    for why, listed in alike.items():
        more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
        yield f"metrics of {', '.join(listed[:NAMED])}{more} cannot be read: {why}"


def why_missing(looked: Looked, case: Case) -> str:
    """Why nobody knows how many requests its replicas have, where that is known."""
    if looked.problem:
        return looked.problem
    for question in NEEDED:
        if question in looked.errors:
            return looked.errors[question]
    asked = (pod_key(case.subject, pod) for pods in case.ready.values() for pod in pods)
    said = Counter(looked.errors[key] for key in asked if key in looked.errors)
    return min(said, key=lambda why: (-said[why], why), default="")
