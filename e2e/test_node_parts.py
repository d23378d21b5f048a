"""Parts of real nodes that need no root: addresses, the store of images, and what pip is told elsewhere."""

from __future__ import annotations

import json
import subprocess
import tarfile
from ipaddress import ip_address, ip_network
from itertools import combinations
from pathlib import Path

import pytest

from cluster import ClusterFailed
from cluster.images import pip
from cluster.node.image_store import BLOBS, METADATA, SNAPSHOTTER, ImageStore
from cluster.node.network import NETWORKS, NODES, Addresses
from cluster.node.runtime import PAUSE, pause_archive
from cluster.processes import Processes

OLD, NEW, OTHER = "localhost/plimsoll/a:1", "localhost/plimsoll/a:2", "localhost/plimsoll/b:1"


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    """With two blobs and one unpacked layer, as containerd leaves them."""
    made = ImageStore(tmp_path / "store")
    for folder in (BLOBS, METADATA.parent, SNAPSHOTTER / "snapshots" / "1" / "fs"):
        (made.root / folder).mkdir(parents=True)
    (made.root / BLOBS / "config").write_bytes(b"{}")
    (made.root / BLOBS / "layer").write_bytes(b"x" * 11_000_000)
    (made.root / METADATA).write_bytes(b"meta")
    (made.root / SNAPSHOTTER / "metadata.db").write_bytes(b"snapshots")
    (made.root / SNAPSHOTTER / "snapshots" / "1" / "fs" / "file").write_text("content")
    return made


def test_networks_of_clusters_do_not_overlap() -> None:
    networks = [ip_network(f"{at.host}/24", strict=False) for at in map(_addresses, range(NETWORKS))]
    for at in map(_addresses, range(NETWORKS)):
        networks += [ip_network(at.services), ip_network(at.pods)]
        for place in range(NODES):
            assert ip_network(at.pods_of(place)).subnet_of(ip_network(at.pods))  # type: ignore[arg-type]
            assert ip_address(at.node(place)) in ip_network(f"{at.host}/24", strict=False)
    assert not any(one.overlaps(other) for one, other in combinations(networks, 2))


def test_a_node_borrows_images_and_writes_nothing_back(store: ImageStore, tmp_path: Path) -> None:
    root = tmp_path / "node"
    store.lend(root).close()
    assert (root / SNAPSHOTTER / "snapshots" / "1" / "fs" / "file").read_text() == "content"
    (root / METADATA).write_bytes(b"changed")
    (root / BLOBS / "another").write_bytes(b"{}")
    assert (store.root / METADATA).read_bytes() == b"meta"
    assert sorted(blob.name for blob in (store.root / BLOBS).iterdir()) == ["config", "layer"]


def test_an_empty_store_lends_nothing(tmp_path: Path) -> None:
    ImageStore(tmp_path / "store").lend(tmp_path / "node").close()
    assert not (tmp_path / "node").exists()


def test_an_unpacked_layer_keeps_its_size_and_takes_no_space(store: ImageStore) -> None:
    store.complete(NEW)
    layer, config = store.root / BLOBS / "layer", store.root / BLOBS / "config"
    assert (layer.stat().st_size, layer.stat().st_blocks) == (11_000_000, 0)
    assert config.read_bytes() == b"{}"
    assert store.has(NEW)
    assert not store.has(OLD)


def test_older_images_go_when_nobody_borrows(store: ImageStore, tmp_path: Path) -> None:
    for reference in (OLD, NEW, OTHER):
        store.complete(reference)
    loan = store.lend(tmp_path / "node")
    assert store.superseded(NEW) == []
    loan.close()
    assert store.superseded(NEW) == [OLD]
    store.forget(OLD)
    assert not store.has(OLD)
    assert store.superseded(NEW) == []


def test_the_image_of_one_program_is_the_same_every_time(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(b"program")
    first = pause_archive(program, tmp_path / "first.tar").read_bytes()
    assert pause_archive(program, tmp_path / "second.tar").read_bytes() == first
    with tarfile.open(tmp_path / "first.tar") as tar:
        manifest = tar.extractfile("manifest.json")
        assert manifest is not None
        assert json.load(manifest)[0]["RepoTags"] == [PAUSE]


def test_programs_that_work_together_are_waited_for_together(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    try:
        processes.start("well", ["true"])
        processes.finish("well")
        processes.start("waits", ["sleep", "600"])
        processes.start("fails", ["sh", "-c", "echo no more flour; exit 3"])
        with pytest.raises(ClusterFailed, match=r"(?s)fails ended with 3.*no more flour"):
            processes.finish("waits", "fails")
    finally:
        processes.stop()


def test_pip_is_told_elsewhere_what_it_is_told_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = f"global.timeout='60'\ninstall.find-links='{tmp_path}'\n:env:.timeout='180'\nlist.format='json'\n"

    def listed(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 0, said, "")

    monkeypatch.setattr(subprocess, "run", listed)
    assert pip.settings() == {"timeout": "180", "find-links": str(tmp_path)}
    assert pip.local_wheels() == [tmp_path]
    assert "timeout = 180" in pip.write_settings(tmp_path / "pip.conf").read_text()


def _addresses(number: int) -> Addresses:
    return Addresses(number=number)
