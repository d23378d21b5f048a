"""Images are made once; a recipe that fails says why, and leaves nothing half done."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from cluster import Cluster
from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.images import TOOLS, Recipe, ensure_images
from cluster.node import Unavailable
from cluster.node.image_store import ImageStore

pytestmark = pytest.mark.real_node


@pytest.fixture
def places() -> Places:
    return Places.of(os.environ)  # noqa: TID251 - as the tests' own


def test_an_image_that_is_there_is_not_made_again(real_cluster: Cluster, places: Places) -> None:
    said = io.StringIO()
    ensure_images([TOOLS], places, Progress(said))
    assert said.getvalue() == ""
    listed = real_cluster.nodes[0].runtime.ctr("images", "list", "--quiet").splitlines()
    assert TOOLS.reference in listed


@pytest.mark.usefixtures("real_cluster")  # or why there cannot be one
def test_a_recipe_that_fails_says_why_and_leaves_nothing(tmp_path: Path, places: Places) -> None:
    (tmp_path / "Dockerfile").write_text(
        "ARG BASE\nFROM ${BASE}\nRUN echo there is no more flour && exit 3\n"
    )
    recipe, store = Recipe(name="fails", folder=tmp_path), ImageStore.of(places)
    with pytest.raises(Unavailable, match=r"(?s)image fails could not be made.*there is no more flour"):
        ensure_images([recipe], places, Progress(io.StringIO()))
    assert not store.has(recipe.reference)
    assert not list(store.folder.glob("making-*"))
