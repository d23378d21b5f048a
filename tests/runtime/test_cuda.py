"""The CUDA that an image's engine was built for, against the one that a node's driver runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll_runtime.gpus import Devices, Gpu
from plimsoll_runtime.preflight import GIB, Need, Seen, misfits, with_argv

H100 = Gpu("NVIDIA H100 80GB HBM3", 80 * GIB, 79 * GIB, (9, 0))


@pytest.mark.parametrize(
    ("runs", "built", "refused"),
    [
        ((12, 8), (13, 0), True),
        ((11, 8), (12, 4), True),
        ((12, 2), (12, 9), False),  # within one major version the older driver will do
        ((13, 0), (12, 8), False),
        ((13, 0), (13, 2), False),
        (None, (13, 0), False),
        ((12, 8), None, False),
    ],
)
def test_a_driver_is_too_old_only_where_the_engine_was_built_for_a_newer_major_version_of_cuda(
    runs, built, refused
):
    found = misfits(Need(cuda=built), Seen(devices=Devices((H100,), "570.1", cuda=runs)))
    assert [one.word for one in found] == (["Driver"] if refused else [])
    if refused:
        assert "570.1" in found[0].message
        assert f"CUDA {runs[0]}: spec.engine.image" in found[0].remedy


TORCH = "from typing import Optional\n\n__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"


def image(root: Path, *torches: str) -> dict[str, str]:
    """With the engine's program, and a torch beside it for each text; the environment that finds it."""
    program = root / "bin/vllm"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    program.write_text("#!/usr/bin/python3\n")
    for number, text in enumerate(torches):
        file = root / f"lib/python3.{12 + number}/site-packages/torch/version.py"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    return {"PATH": str(program.parent)}


@pytest.mark.parametrize(
    ("torches", "built"),
    [
        ([TORCH], (13, 0)),
        (["debug = False\ncuda = '12.4'\n"], (12, 4)),
        (["__version__ = '2.13.0+rocm7.2'\ncuda: Optional[str] = None\nhip = '7.2'\n"], None),
        ([TORCH, TORCH], (13, 0)),
        ([TORCH, "cuda = '12.4'\n"], None),
        ([], None),
    ],
)
def test_an_engine_is_built_for_the_cuda_of_the_torch_beside_it_where_that_is_certain(
    tmp_path, torches, built
):
    assert with_argv(Need(), ("vllm", "serve", "m"), image(tmp_path, *torches)).cuda == built


@pytest.mark.parametrize(
    ("environment", "known"),
    [
        ({}, True),
        ({"VLLM_ENABLE_CUDA_COMPATIBILITY": "0"}, True),  # as published images have it
        ({"VLLM_ENABLE_CUDA_COMPATIBILITY": "1"}, False),
        ({"VLLM_ENABLE_CUDA_COMPATIBILITY": " True"}, False),
        ({"PYTHONPATH": "/opt/torch"}, False),
        ({"PATH": ""}, False),
    ],
)
def test_of_an_engine_that_brings_a_driver_or_another_torch_nobody_knows_its_cuda(
    tmp_path, environment, known
):
    found = {**image(tmp_path, TORCH), **environment}
    assert with_argv(Need(), ("vllm", "serve", "m"), found).cuda == ((13, 0) if known else None)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("#!/opt/venv/bin/python3.12\nimport sys\n", True),
        ("#!/bin/sh\n'''exec' '/a/long/path/python3' \"$0\" \"$@\"\n' '''\nimport sys\n", True),
        ('#!/bin/sh\nexport LD_LIBRARY_PATH=/usr/local/cuda/compat\nexec python3 -m vllm "$@"\n', False),
        ("", False),
    ],
)
def test_a_program_that_may_choose_its_libraries_first_is_not_judged(tmp_path, text, known):
    found = image(tmp_path, TORCH)
    (tmp_path / "bin/vllm").write_text(text)
    assert with_argv(Need(), ("vllm", "serve", "m"), found).cuda == ((13, 0) if known else None)


def test_of_another_program_nobody_knows_its_cuda(tmp_path):
    found = image(tmp_path, TORCH)
    assert with_argv(Need(), ("sh", "-c", "vllm serve m"), found).cuda is None
