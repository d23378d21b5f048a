"""Hubs that say how long they are to be left alone: for how long that is heeded, and what is said meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from plimsoll.engines.timing import HUB_WAIT_SECONDS
from plimsoll_runtime.bringing import _Teller
from plimsoll_runtime.said import Said
from plimsoll_runtime.sources.fetch import source_of
from plimsoll_runtime.sources.trouble import FetchFailed, Patience, asked_to_wait, patiently
from plimsoll_runtime.sources.web import Web
from tests.runtime.hub_site import Cdn, HubSite, Repository
from tests.runtime.sites import status_once
from tests.runtime.small_model import NAME, WANTED, Listener, files_of, get, shards

LATER = {"retry-after": "Wed, 21 Oct 2026 07:28:40 GMT"}


@pytest.fixture
def hub(cdn: Cdn) -> Iterator[HubSite]:
    one = HubSite({NAME: Repository(shards())}, cdn)
    yield one
    one.close()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "120"}, 120.0),
        (LATER | {"date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 40.0),
        (LATER | {"date": "Wed, 21 Oct 2026 07:29:00 GMT"}, 0.0),
        (LATER, None),
        ({"retry-after": "soon", "date": "now"}, None),
        ({"retry-after": "Wed, 21 Oct 99999 07:28:40 GMT", "date": LATER["retry-after"]}, None),
        ({"ratelimit": '"api";r=0;t=55'}, 55.0),
        ({"ratelimit": '"api";r=0;t=55', "retry-after": "7"}, 7.0),
        ({"ratelimit": '"pages";r=12;t=290, "api"; t=55; r=0'}, 55.0),
        ({"ratelimit": '"api";r=3;t=55'}, None),
        ({"ratelimit": "limit=100, remaining=0"}, None),
    ],
)
def test_what_a_server_asks_for(headers, seconds):
    assert asked_to_wait(headers) == seconds


@pytest.mark.parametrize(
    ("attempt", "asked", "seconds"),
    [(1, None, 1.0), (3, None, 4.0), (7, None, 30.0), (4, 2.0, 8.0), (1, 55.0, 55.0), (1, 3600.0, 330.0)],
)
def test_a_server_is_heeded_for_longer_than_we_would_wait_ourselves(attempt, asked, seconds):
    assert Patience().pause(attempt, asked) == seconds


def test_a_start_has_time_for_one_such_wait():
    assert Patience().longest == HUB_WAIT_SECONDS


def test_a_hub_is_asked_again_when_its_window_is_over(hub):
    hub.once.append(status_once("/api/", 429, {"RateLimit": '"api";r=0;t=299'}))
    waits: list[tuple[float, str]] = []

    def wait(seconds: float, why: str) -> bool:
        waits.append((seconds, why))
        return False

    client = source_of(f"hf://{NAME}", None, Web({"HF_ENDPOINT": hub.url}))
    assert patiently(client.listing, Patience(), wait).files
    assert waits == [(299.0, "127.0.0.1 answers 429")]


def test_people_read_what_is_waited_for(hub, tmp_path):
    hub.once.append(status_once("/api/", 429, {"Retry-After": "1"}))
    told = Listener()
    get(hub, tmp_path, told)
    assert told.waited == ["127.0.0.1 answers 429: asks again in 1 s", None]


def test_a_wait_is_the_phase_of_a_start(capfd):
    said = Said(["vllm", "serve", NAME], time.monotonic())
    said.begins_to_fetch(time.monotonic())
    teller = _Teller(said, lambda: False)
    teller.waits("hub answers 429: asks again in 299 s")
    assert said.facts(time.monotonic())["phase"] == "hub answers 429: asks again in 299 s"
    teller.waits(None)
    assert said.facts(time.monotonic())["phase"] == "looking for the model"
    assert capfd.readouterr().err.count("asks again in 299 s") == 1


@pytest.mark.parametrize("status", [520, 521, 522, 523, 524])
def test_what_stands_before_a_server_may_be_busy_too(hub, tmp_path, status):
    hub.once.append(status_once("/api/", status))
    assert files_of(get(hub, tmp_path).path) == WANTED


def test_a_certificate_that_is_refused_there_is_nothing_that_passes(hub, tmp_path):
    hub.once.append(status_once("/api/", 526))
    with pytest.raises(FetchFailed, match="526"):
        get(hub, tmp_path)
