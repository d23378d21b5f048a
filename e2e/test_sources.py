"""Models from real servers of the protocols that they come by: a registry of images and an S3 store, which check what they are asked.

What goes wrong on the way is done by a front that passes on all the rest; what lies there wrong is spoilt in the servers' own folders.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from build import NAME, build
from fronting import Front
from lain import PATIENCE, SHARD, Lain, in_bucket, in_registry, spoil
from plimsoll_runtime.model import header
from plimsoll_runtime.sources.fetch import Fetched
from plimsoll_runtime.sources.remote import remote
from stores import Registry
from tests.runtime.sites import Asked, Reply, cut_once
from tests.runtime.small_model import WANTED, Listener, files_of, shards

pytestmark = pytest.mark.real_store


@pytest.fixture(params=["registry", "bucket"])
def lain(request: pytest.FixtureRequest, place: str) -> Lain:
    """The same small model, in a place of the test's own."""
    store = request.getfixturevalue(request.param)
    return in_registry(store, place) if isinstance(store, Registry) else in_bucket(store, place)


@pytest.fixture
def front(lain: Lain) -> Iterator[Front]:
    one = Front(lain.store.port)
    yield one
    one.close()


def test_all_of_a_model_comes_and_is_not_asked_for_again(lain: Lain, front: Front, tmp_path: Path) -> None:
    told = Listener()
    found = lain.get(tmp_path / "direct", told)
    assert files_of(found.path) == WANTED
    assert all((found.path / name).read_bytes() == shards()[name] for name in WANTED)
    assert told.seen[-1][0] == told.seen[-1][1] > 900_000
    through = lain.get(tmp_path / "front", at=front)
    count = len(front.asked)
    assert lain.get(tmp_path / "front", at=front) == through
    assert len(front.asked) == count


def test_what_was_cut_goes_on_where_it_was(lain: Lain, front: Front, tmp_path: Path) -> None:
    where = lain.path(SHARD)
    front.once += [cut_once(where, 100_000), cut_once(where, 50_000)]
    found = lain.get(tmp_path, at=front)
    assert (found.path / SHARD).read_bytes() == shards()[SHARD]
    asked = [one.headers.get("range") for one in front.asked if where in one.path and one.method == "GET"]
    size = len(shards()[SHARD])
    assert asked == [None, f"bytes=100000-{size - 1}", f"bytes=150000-{size - 1}"]


def test_what_was_spoilt_on_the_servers_disk_is_refused(lain: Lain, tmp_path: Path) -> None:
    spoil(lain.file(SHARD))
    said = lain.refused(tmp_path)
    assert said.startswith(f"BadCheckpoint: {SHARD} of {lain.named(lain.store.address)} is not what its ")
    assert said.endswith(" sum says, twice")


def test_a_part_that_a_server_has_not_is_told(lain: Lain, front: Front, tmp_path: Path) -> None:
    """The file became shorter while it was fetched: the server itself answers that there is no such range."""
    where = lain.path(SHARD)

    def shorter(asked: Asked) -> Reply | None:
        if where in asked.path and "range" in asked.headers:
            with lain.file(SHARD).open("r+b") as file:
                file.truncate(100_000)
        return None

    front.once += [cut_once(where, 200_000), shorter]
    name = where.rpartition("/")[2]
    assert (
        lain.refused(tmp_path, at=front) == f"BadCheckpoint: 127.0.0.1 has less of {name} than it announced"
    )


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fe80::1]/",
        "http://metadata.google.internal/",
        "file:///etc/passwd",
        "ftp://127.0.0.1/weights",
    ],
)
def test_nobody_is_sent_to_a_forbidden_address(
    lain: Lain, front: Front, tmp_path: Path, location: str
) -> None:
    where = lain.path(SHARD)

    def elsewhere(asked: Asked) -> Reply | None:
        return Reply(307, b"", {"Location": location}) if where in asked.path else None

    front.once.append(elsewhere)
    assert lain.refused(tmp_path, at=front).startswith("Download: ")
    assert not list(tmp_path.rglob(SHARD))


def test_replicas_that_share_a_volume_fetch_once(lain: Lain, front: Front, tmp_path: Path) -> None:
    found: list[Fetched] = []
    threads = [threading.Thread(target=lambda: found.append(lain.get(tmp_path, at=front))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len(set(found)) == 1
    for name in WANTED:
        asked = [one for one in front.asked if lain.path(name) in one.path and one.method == "GET"]
        # An index is read before it is known which files are wanted.
        assert len(asked) == 1 + name.endswith(".index.json"), name


def test_headers_are_read_without_weights(lain: Lain, front: Front) -> None:
    address = f"127.0.0.1:{front.port}"
    model = remote(lain.named(address), None, lain.opens(address), PATIENCE)
    assert set(model.files) == set(shards())
    with model.open("config.json") as stream:
        assert json.load(stream)["num_hidden_layers"] == 1
    with model.open(SHARD) as stream:
        assert header("m", stream) == {"w": ("U8", (300_000,))}
    assert {one.headers["range"] for one in front.asked if lain.path(SHARD) in one.path} == {"bytes=0-262143"}


def test_the_facts_of_a_model_are_left_for_the_kubelet(lain: Lain, tmp_path: Path) -> None:
    packed, left = build(tmp_path / NAME), tmp_path / "left"
    source, given = lain.named(lain.store.address), lain.opens(lain.store.address)
    argv = [sys.executable, "-I", "-S", str(packed), "facts", source, f"--termination-log={left}"]
    done = subprocess.run(argv, env={**given, "HOME": str(tmp_path)}, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(left.read_text())
    assert told["revision"] == lain.get(tmp_path / "all").revision
