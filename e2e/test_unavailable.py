"""Machines that cannot have real nodes are told why, and what would help; nothing here needs one that can."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from cluster import Cluster
from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.images import Recipe, ensure_images
from cluster.node import Unavailable, packages


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(path=os.defpath, cache=tmp_path)


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65534)


@pytest.mark.usefixtures("nobody")
def test_without_root_there_is_no_real_node_and_no_image(places: Places, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="needs root"), Cluster(real_nodes=1):
        pass
    with pytest.raises(Unavailable, match="needs root"):
        ensure_images([Recipe(name="any", folder=tmp_path)], places, Progress(io.StringIO()))


@pytest.mark.usefixtures("nobody")
def test_programs_that_lack_are_named_by_their_packages() -> None:
    needed = {"no-such-program": "such-package", "nor-this": "another-package", "sh": "dash"}
    with pytest.raises(Unavailable, match=r"another-package such-package; install them"):
        packages.require(needed, Progress(io.StringIO()))


def test_a_recipe_is_another_image_when_a_file_of_it_changes(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    before = Recipe(name="any", folder=tmp_path).reference
    assert Recipe(name="any", folder=tmp_path).reference == before
    (tmp_path / "Dockerfile").write_text("FROM nothing\n")
    assert Recipe(name="any", folder=tmp_path).reference != before
