"""A report tells where the GPU-hours of the law went: as a table on a terminal and on the page, and as data."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from plimsoll.cli.simulate_report import SPENT
from plimsoll.simulate.spending import Spent
from tests.cli.test_plan import resource
from tests.cli.test_simulate import SPEC, llm, rates, simulated

__all__ = ["llm", "rates"]
ASKED = ("--routing", "service", "--policy", "plimsoll", "--policy", "hpa")


def test_the_table_has_the_hours_of_the_law_alone_and_their_shares(llm: str, rates: str, tmp_path: Path):
    page = tmp_path / "out.html"
    ran = simulated(llm, rates, *ASKED, "--html", str(page))
    assert ran.code == 0, ran.err
    heads = re.search(r"^POLICY +GPU-HOURS FOR LOAD .*$", ran.out, re.MULTILINE)
    assert heads is not None
    assert re.split(r" {2,}", heads[0]) == list(SPENT)
    row = ran.out[heads.end() + 1 :].partition("\n")[0]
    assert row.startswith("plimsoll ")
    shares = [int(one) for one in re.findall(r"\((\d+)%\)", row)]
    assert len(shares) == len(SPENT) - 1
    assert sum(shares) == pytest.approx(100, abs=3)
    assert not ran.out[heads.end() + 2 + len(row) :].startswith("hpa")
    assert "<th>GPU-HOURS FOR LOAD</th>" in page.read_text()


def test_the_json_form_has_each_part_and_nothing_of_who_tells_none(llm: str, rates: str):
    plimsoll, hpa = json.loads(simulated(llm, rates, *ASKED, "-o", "json").out)["results"]
    assert set(plimsoll["spent"]) == {one.name for one in fields(Spent)}
    assert sum(plimsoll["spent"].values()) == pytest.approx(plimsoll["figures"]["gpu_hours"])
    assert hpa["spent"] is None


def test_of_a_number_that_a_person_fixed_there_is_nothing_to_tell(tmp_path: Path, rates: str):
    file = tmp_path / "fixed.yaml"
    file.write_text(resource("chat", **{**SPEC, "replicas": 2}))
    assert "GPU-HOURS FOR LOAD" not in simulated(str(file), rates, *ASKED).out
