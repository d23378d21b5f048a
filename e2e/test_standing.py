"""The commands for a person: a cluster that stands between them, is found again, and leaves nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from cluster import ClusterFailed
from cluster.__main__ import main
from cluster.fleet import ready_fleets
from cluster.standing import Standing, Wanted
from common import alive, eventually
from plimsoll.facts.snapshot import read_snapshot


@pytest.fixture
def standing(tmp_path: Path) -> Standing:
    return Standing(tmp_path / "standing")


def all_gone(about: dict[str, Any]) -> bool:
    return not any(alive(pid) for pid in about["pids"].values())


def test_a_cluster_stands_until_it_is_taken_down(standing: Standing) -> None:
    about = standing.up(Wanted(fleet="l40s"))
    try:
        assert standing.read() == about
        assert set(about["pids"]) >= {"holder", "etcd", "kube-apiserver", "kwok"}
        assert all(alive(pid) for pid in about["pids"].values())
        assert standing.up(Wanted(fleet="l40s")) == about  # as asked for, so left alone
        with pytest.raises(ClusterFailed, match="with --fleet l40s; take it down first"):
            standing.up(Wanted())
    finally:
        assert standing.down()
    assert eventually(lambda: all_gone(about))
    assert not standing.folder.exists()
    assert not standing.down()


def test_a_cluster_whose_holder_is_killed_is_gone_and_can_be_started_anew(standing: Standing) -> None:
    about = standing.up(Wanted())
    os.kill(about["pids"]["holder"], signal.SIGKILL)
    assert eventually(lambda: all_gone(about))
    assert eventually(lambda: not standing.cluster_folder.exists())
    assert standing.read() is None
    again = standing.up(Wanted())
    assert standing.down()
    assert eventually(lambda: all_gone(again))


def test_a_cluster_that_loses_a_program_ends_and_says_why(standing: Standing) -> None:
    about = standing.up(Wanted())
    os.kill(about["pids"]["kube-scheduler"], signal.SIGKILL)
    assert eventually(lambda: all_gone(about))
    assert "kube-scheduler ended with -9" in standing.holder_log.read_text()


def test_the_commands_tell_what_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cluster.__main__.Standing", lambda folder: Standing(tmp_path / folder.name))
    assert main(["status"]) == 1
    assert main(["up", "--fleet", "l40s"]) == 0
    assert main(["up", "--fleet", "l40s"]) == 0  # and again
    assert main(["up"]) == 1
    assert main(["down", "--name", "another"]) == 0
    assert main(["logs", "kube-scheduler"]) == 0
    assert main(["logs", "nothing"]) == 1
    assert main(["down"]) == 0
    said = capsys.readouterr()
    assert "no cluster is up" in said.out
    assert "fleet l40s: 8 nodes ready" in said.out
    assert "with --fleet l40s; take it down first" in said.err
    assert f"export KUBECONFIG={tmp_path}/default/cluster/kubeconfigs/admin.yaml" in said.out
    assert "starting the cluster --fleet l40s: done in" in said.err
    assert "no log of nothing; there are etcd, kube-apiserver" in said.err


def test_the_ready_fleets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(ready_fleets())
    assert "mixed-200        200 nodes  An estate of 200 nodes" in lines[-2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no fleet is called"),
        (
            "apiVersion: plimsoll.dev/v1alpha1\nkind: Fleet\npools: [{name: a, gpuProduct: X1, gpusPerNode: 8, nodes: 1}]",
            "X1",
        ),
    ],
)
def test_a_wrong_fleet_is_told_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, said: str
) -> None:
    file = tmp_path / "fleet.yaml"
    if content is not None:
        file.write_text(content)
    assert main(["up", "--name", "never", "--fleet", str(file)]) == 1
    assert said in capsys.readouterr().err


def test_an_estate_of_any_size_is_written_as_a_snapshot_that_is_the_same_every_time(tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    for file in (first, second):
        assert main(["snapshot", "--nodes", "1000", "--out", str(file)]) == 0
    assert first.read_bytes() == second.read_bytes()
    inventory = read_snapshot(first.read_bytes()).fleet().inventory()
    assert inventory.problems == ()
    assert sum(pool.nodes for pool in inventory.pools) == 1000
    assert main(["snapshot", "--nodes", "3", "--out", str(first)]) == 1
