"""Layers of an image that are packed by gzip: of several members, as programs that seek in layers pack them, and broken ones."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest

from plimsoll_runtime.sources.registry import ARCHIVES
from plimsoll_runtime.sources.trouble import FetchFailed
from plimsoll_runtime.sources.unpacking import unpack
from tests.runtime.registry_site import archive
from tests.runtime.small_model import safetensors

FILES = {"config.json": b"{}", "model.safetensors": safetensors(50_000), "tokenizer.json": b"[]"}
WHOLE = archive(FILES)


def unpacked(folder: Path, layer: bytes) -> dict[str, bytes]:
    archives = folder / ARCHIVES
    archives.mkdir()
    (archives / "0000-aa.tar.gz").write_bytes(layer)
    return {file.path: (folder / file.path).read_bytes() for file in unpack(archives, folder, lambda: False)}


def in_members(cuts: Sequence[int]) -> bytes:
    ends = [*cuts, len(WHOLE)]
    return b"".join(gzip.compress(WHOLE[start:end]) for start, end in zip([0, *cuts], ends, strict=True))


@pytest.mark.parametrize(
    "cuts",
    [
        (),
        (1024,),  # between two files
        (512, 1024, 1536),  # between headers and what they are of, as eStargz has it
        range(1000, len(WHOLE), 1000),
    ],
)
def test_all_members_of_a_layer_are_unpacked(tmp_path, cuts):
    assert unpacked(tmp_path, in_members(cuts)) == FILES


FIRST, REST = gzip.compress(WHOLE[:1536]), gzip.compress(WHOLE[1536:])


@pytest.mark.parametrize(
    "layer",
    [
        pytest.param(WHOLE, id="not packed at all"),
        pytest.param(FIRST + REST[:-1000], id="cut short"),
        pytest.param(FIRST + REST[:10] + bytes([255]) * 100 + REST[110:], id="spoilt"),
        pytest.param(FIRST[:-8] + bytes(8) + REST, id="another sum"),
        pytest.param(FIRST + b"no member", id="no second member"),
    ],
)
def test_a_layer_that_is_packed_wrong_makes_no_volume_unwritable(tmp_path, layer):
    with pytest.raises(FetchFailed, match="a layer is no archive that can be read") as caught:
        unpacked(tmp_path, layer)
    assert caught.value.failure.word == "BadCheckpoint"
