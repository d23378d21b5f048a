"""The tiny models: the same every time, small enough for a ConfigMap, and read by the product as what they are."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Final

import pytest

import models
from models import TinyModel
from plimsoll.facts.hf_config import parse_config

MAKERS: Final = (models.dense, models.experts, models.adapter)
CONFIG_MAP_BYTES: Final = 1 << 20


@pytest.mark.parametrize("make", MAKERS)
def test_a_model_has_the_same_bytes_every_time_and_fits_a_config_map(make: Callable[[], TinyModel]) -> None:
    made = make()
    models.tokenizer.cache_clear()
    assert make().files == made.files
    assert len(json.dumps(made.config_map())) < CONFIG_MAP_BYTES


def test_every_piece_of_the_vocabulary_has_its_own_number() -> None:
    tokenizer = json.loads(models.dense().files["tokenizer.json"])
    pieces = tokenizer["model"]["vocab"]
    assert sorted(pieces.values()) == list(range(models.VOCABULARY))
    assert [pieces[special] for special in models.SPECIAL] == [0, 1, 2]
    # Each merge makes a piece that is there of two that are there before it.
    for left, right in tokenizer["model"]["merges"]:
        assert max(pieces[left], pieces[right]) < pieces[left + right]


def test_the_adapter_s_tensors_are_where_its_header_says() -> None:
    data = models.adapter().files["adapter_model.safetensors"]
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    tensors = [about for name, about in header.items() if name != "__metadata__"]
    assert len(tensors) == 8 * 2 * 2
    for about in tensors:
        start, end = about["data_offsets"]
        assert end - start == 2 * about["shape"][0] * about["shape"][1]
    assert max(about["data_offsets"][1] for about in tensors) == len(data) - 8 - length


@pytest.mark.parametrize(("make", "layers"), [(models.dense, 8), (models.experts, 4)])
def test_the_product_reads_its_config(make: Callable[[], TinyModel], layers: int) -> None:
    read = parse_config(json.loads(make().files["config.json"]))
    assert (len(read.layers), read.hidden, read.vocab) == (layers, 256, models.VOCABULARY)
    assert read.max_positions == models.CONTEXT
