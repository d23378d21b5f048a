"""What becomes of the links in an image's layers, in whatever order and layer they and their targets are."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from plimsoll_runtime.sources import links
from plimsoll_runtime.sources.registry import ARCHIVES
from plimsoll_runtime.sources.trouble import FetchFailed, Stopped
from plimsoll_runtime.sources.unpacking import unpack

Layer = Sequence[str]
"""Entries in their order: `name=body` is a file, `name -> target` a link, `name => target` another name of a file, `name/` a folder."""


def unpacked(root: Path, *layers: Layer) -> dict[str, str]:
    """The files with what is in them."""
    folder, archives = root / "model", root / "model" / ARCHIVES
    archives.mkdir(parents=True)
    for number, entries in enumerate(layers):
        with tarfile.open(archives / f"{number}.tar", "w") as tar:
            for entry in entries:
                add(tar, entry)
    files = unpack(archives, folder, lambda: False)
    assert not any(file.is_symlink() for file in folder.rglob("*"))
    return {file.path: (folder / file.path).read_text() for file in files}


def add(tar: tarfile.TarFile, entry: str) -> None:
    for sign, kind in ((" -> ", tarfile.SYMTYPE), (" => ", tarfile.LNKTYPE)):
        name, found, target = entry.partition(sign)
        if found:
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, target
            tar.addfile(link)
            return
    name, _, body = entry.partition("=")
    about = tarfile.TarInfo(name)
    about.size = len(body)
    if name.endswith("/"):
        about.type = tarfile.DIRTYPE
    tar.addfile(about, io.BytesIO(body.encode()))


@pytest.mark.parametrize(
    ("layers", "files"),
    [
        ([["m/w -> ../of/w", "of/w=1"]], {"m/w": "1", "of/w": "1"}),
        ([["of/w=1", "m/w -> ../of/w"]], {"m/w": "1", "of/w": "1"}),
        ([["m/w -> /of/w", "of/w=1"]], {"m/w": "1", "of/w": "1"}),
        ([["m -> of", "of/w=1", "of/a/w=2"]], {"m/w": "1", "m/a/w": "2", "of/w": "1", "of/a/w": "2"}),
        ([["a -> b", "b -> c", "c=1"]], {"a": "1", "b": "1", "c": "1"}),
        ([["new -> v2", "v2/w -> ../of/w", "of/w=1"]], {"new/w": "1", "v2/w": "1", "of/w": "1"}),
        ([["m/w -> ../to/w", "to -> of", "of/w=1"]], {"m/w": "1", "to/w": "1", "of/w": "1"}),
        ([["m/w -> ../of/w"], ["of/w=1"]], {"m/w": "1", "of/w": "1"}),
        ([["of/w=1", "m/w -> ../of/w"], ["of/w=2"]], {"m/w": "2", "of/w": "2"}),
        ([["m/w => of/w", "of/w=1"]], {"m/w": "1", "of/w": "1"}),
        ([["of/w=1", "m/w => of/w"], ["of/w=2"]], {"m/w": "1", "of/w": "2"}),
        ([["l -> w", "h => l", "w=1"]], {"l": "1", "h": "1", "w": "1"}),
        ([["w=1", "w => w"]], {"w": "1"}),
    ],
    ids=[
        "before its target", "behind it", "from the root", "to a folder", "to a link", "to a folder of links", "through a link",
        "to a later layer", "to what a later layer replaces", "a name before its file", "a name of a file that is replaced",
        "a name of a link", "a name of its own",
    ],
)  # fmt: skip
def test_a_link_becomes_what_it_leads_to_when_all_is_unpacked(tmp_path: Path, layers, files):
    """One that came before its target, or that led to a folder, was left out without a word."""
    assert unpacked(tmp_path, *layers) == files


@pytest.mark.parametrize(
    ("layers", "files"),
    [
        ([["m -> of", "of/w=1"], ["m/x=2"]], {"m/w": "1", "m/x": "2", "of/w": "1", "of/x": "2"}),
        ([["m -> of", "of/w=1"], ["m/", "m/x=2"]], {"m/x": "2", "of/w": "1"}),
        ([["m -> of", "of/w=1"], ["m=2"]], {"m": "2", "of/w": "1"}),
        ([["m/a=1", "of/w=1"], ["m -> of"]], {"m/w": "1", "of/w": "1"}),
        ([["m/l -> ../w", "w=1"], ["m=2"]], {"m": "2", "w": "1"}),
        ([["m -> of", "of/w=1"], [".wh.m="]], {"of/w": "1"}),
        ([["m/l -> ../w", "w=1"], [".wh.m="]], {"w": "1"}),
        ([["m/l -> ../w", "w=1"], ["m/.wh..wh..opq=", "m/x=2"]], {"m/x": "2", "w": "1"}),
        ([["m -> of", "of/w=1", "of/x=1"], ["m/.wh.w="]], {"m/x": "1", "of/x": "1"}),
    ],
    ids=[
        "a file behind it", "a folder in its place", "a file in its place", "in place of a folder", "a file in place of its folder",
        "taken away", "taken away with its folder", "all of its folder taken away", "a file behind it taken away",
    ],
)  # fmt: skip
def test_what_later_layers_do_to_a_link_and_behind_it_is_done(tmp_path: Path, layers, files):
    assert unpacked(tmp_path, *layers) == files


@pytest.mark.parametrize(
    ("layer", "files"),
    [
        (["w=1", "l -> l"], {"w": "1"}),
        (["w=1", "a -> b", "b -> a"], {"w": "1"}),
        (["w=1", "a -> a/b"], {"w": "1"}),
        (["w=1", "a -> ."], {"w": "1"}),
        (["m/w=1", "m/up -> .."], {"m/w": "1"}),
        (["m/w=1", "m/self -> ../m"], {"m/w": "1"}),
        (["a/w=1", "b/w=2", "a/x -> ../b", "b/y -> ../a"], {"a/w": "1", "a/x/w": "2", "b/w": "2", "b/y/w": "1"}),
        (["w=1", "l -> nothing", "proc -> /proc/self"], {"w": "1"}),
    ],
    ids=["to itself", "to one another", "into itself", "to the root", "up", "to its own folder", "both ways", "to nothing"],
)  # fmt: skip
def test_a_link_without_an_end_or_a_target_is_left_out(tmp_path: Path, layer: Layer, files):
    assert unpacked(tmp_path, layer) == files


@pytest.mark.parametrize(
    "layer",
    [
        ["l -> ../secret"],
        ["m/l -> ../../secret", "m/w=1"],
        ["deep/er/m/w=1", "d -> deep/er", "d/l -> ../../../secret"],
        ["d -> /", "d/l -> ../secret"],
        ["h => ../secret"],
        ["a -> b", "b -> a", "a/w=1"],
    ],
)
def test_no_link_leads_outside_nor_puts_anything_behind_a_circle(tmp_path: Path, layer: Layer):
    (tmp_path / "secret").write_text("of others")
    with pytest.raises(FetchFailed) as caught:
        unpacked(tmp_path, layer)
    assert caught.value.failure.word == "BadCheckpoint"


def test_a_file_that_is_put_through_a_link_from_the_root_stays_within_the_model(tmp_path: Path):
    out = str(tmp_path)[1:]
    assert unpacked(tmp_path, [f"l -> {tmp_path}", "l/w=1"]) == {"l/w": "1", f"{out}/w": "1"}
    assert not (tmp_path / "w").exists()


def test_a_few_links_that_stand_for_very_many_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Thirty folders, each with two links to the next one."""
    monkeypatch.setattr(links, "MOST_NAMES", 10_000)
    layer = [f"{place}/{side} -> ../{place + 1}" for place in range(30) for side in "ab"]
    with pytest.raises(FetchFailed, match="over 10000 names") as caught:
        unpacked(tmp_path, [*layer, "30/w=1"])
    assert caught.value.failure.word == "BadCheckpoint"


def test_links_are_made_no_longer_than_asked_for(tmp_path: Path):
    archives = tmp_path / ARCHIVES
    archives.mkdir()
    with tarfile.open(archives / "0.tar", "w") as tar:
        for entry in ("l -> w", "w="):
            add(tar, entry)
    looks = iter([False, False, True])  # one for each entry, and one for the link
    with pytest.raises(Stopped):
        unpack(archives, tmp_path, lambda: next(looks))
    assert not (tmp_path / "w").exists()
