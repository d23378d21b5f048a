"""When the operator may be counted on: it has seen what there is, or waits for another's Lease; and whoever asks its webhook is answered."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plimsoll.handlers.admission import WebhookOptions
from plimsoll.handlers.life import Life
from plimsoll.handlers.options import Options
from plimsoll.handlers.webhook import Webhook
from plimsoll.prometheus import own

HOOK = WebhookOptions(port=9443, hosts=("webhook.svc",), secret="webhook")


@dataclass
class Lease:
    held: bool
    holder: str


@dataclass
class Hook:
    unheard: str | None


NOBODYS, OURS, OTHERS = Lease(False, ""), Lease(True, "us"), Lease(False, "them")


@pytest.mark.parametrize(
    ("lease", "seen", "listens", "words"),
    [
        (None, False, None, "has not been seen yet"),
        (None, True, None, None),
        (NOBODYS, False, None, "the Lease has not been seen yet"),
        (OURS, False, None, "what is in the cluster has not been seen yet"),
        (OURS, True, None, None),
        (OTHERS, False, None, None),
        (OTHERS, False, False, "the webhook does not listen yet: the port is taken"),
        (OTHERS, False, True, None),
        (OURS, True, False, "the webhook does not listen yet"),
        (OURS, True, True, None),
    ],
    ids=["alone, at start", "alone", "before the Lease was seen", "leads, at start", "leads", "waits", "waits, with a webhook at start",
         "waits, with a webhook", "leads, without a certificate", "leads, with a webhook"],
)  # fmt: skip
def test_it_is_ready_once_it_can_do_its_part(
    lease: Any, seen: bool, listens: bool | None, words: str | None
) -> None:
    life = Life(Options(webhook=None if listens is None else HOOK))
    if seen:
        life.ready.set()
    if listens is not None:
        life._hook = cast(Webhook, Hook(None if listens else "the port is taken"))
    missing = life._unready(lease)
    assert missing is None if words is None else words in (missing or "")


@pytest.mark.parametrize(
    ("lease", "seen", "acts"),
    [
        (None, False, 0),
        (None, True, 1),
        (OURS, False, 0),
        (OURS, True, 1),
        (OTHERS, False, 0),
        (NOBODYS, True, 0),
    ],
    ids=["alone, at start", "alone", "leads, at start", "leads", "waits", "has lost the Lease"],
)
def test_its_metrics_say_that_it_acts_once_it_holds_the_lease_and_takes_turns(
    lease: Any, seen: bool, acts: int
) -> None:
    life = Life(Options())
    life.waking = cast(Any, SimpleNamespace())
    if seen:
        life.ready.set()
    first = next(life._metrics(cast(Any, None), lease))
    assert (first.name, list(first.samples)) == (own.LEADS.name, [("", acts)])


@dataclass
class Watches:
    heard: float

    def alive_at(self) -> float:
        return self.heard


@pytest.mark.parametrize(("others", "own", "oldest"), [(7, 5, 5), (3, 5, 3)])
def test_a_silent_watch_of_the_deployments_themselves_is_one_of_those_that_liveness_knows(
    others: float, own: float, oldest: float
) -> None:
    life = Life(Options())
    life._sees = True
    seen, missed = SimpleNamespace(sight=Watches(others)), Watches(own)
    life.waking = cast(Any, SimpleNamespace(connected=seen, missed=missed))
    assert life._probe(cast(Any, None), None).alive_at() == oldest
