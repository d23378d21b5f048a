"""Several worlds in one report: the first one's as if it were alone, and how the plan does in all of them."""

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from plimsoll import names
from plimsoll.simulate.compare import Comparison, Result
from tests.cli.test_simulate import figures, llm, simulated

__all__ = ["llm"]

SEEDS = ("--seed", "3", "--seed", "1", "--seed", "2")


@pytest.fixture
def rates(tmp_path: Path) -> str:
    """A rise in two minutes, which worlds answer unlike."""
    file = tmp_path / "rates.csv"
    file.write_text("t_s,rate_rps,cv\n0,10,1.2\n60,30,1.2\n")
    return str(file)


def of(figures: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    return [
        {
            "seed": seed,
            "routing": one["routing"],
            "policy": one["policy"],
            "sloPct": one["figures"]["slo_pct"],
            "gpuHours": one["figures"]["gpu_hours"],
        }
        for one in figures["results"]
    ]


def test_each_world_is_what_its_seed_alone_gives_and_the_report_is_of_the_first(
    llm: str, rates: str, tmp_path: Path
):
    kept = tmp_path / "config.yaml"
    kept.write_text(
        f"apiVersion: {names.API_VERSION}\nkind: {names.CONFIG_KIND}\nruntime: {{closeConnections: false}}\n"
    )
    told = ("--config", str(kept))
    alone = {seed: figures(llm, rates, *told, "--seed", str(seed)) for seed in (3, 1, 2)}
    data = figures(llm, rates, *told, *SEEDS)
    worlds = data.pop("worlds")
    assert worlds == [row for seed, each in alone.items() for row in of(each, seed)]
    assert len({json.dumps(one["gpuHours"]) for one in worlds if one["policy"] == "static_peak"}) > 1
    said = data.pop("conclusions")
    first = alone[3].pop("conclusions")
    assert data == alone[3]
    assert [one for one in said if one not in first] == [said[1]]
    assert said[1].startswith("in 2 of 3 worlds plimsoll keeps 99%, at the least 95.")


def test_text_and_page_have_a_table_over_all_worlds(llm: str, rates: str, tmp_path: Path):
    page = tmp_path / "out.html"
    ran = simulated(llm, rates, *SEEDS, "--html", str(page))
    assert ran.code == 0
    out = " ".join(ran.out.split())
    assert "worlds seeds 3, 1 and 2; what is told is of the first, but for the table over all" in out
    title = "over 3 worlds, of seeds 3, 1 and 2"
    table = out.partition(title)[2].partition(" so ")[0].split()
    head = "POLICY BEHIND 99% KEPT SLO % LEAST, MIDDLE, MOST GPU-HOURS LEAST, MIDDLE, MOST"
    assert " ".join(table).startswith(head)
    cells = " ".join(table).removeprefix(head).split()
    assert cells[0:2] == ["plimsoll", "service"]
    assert [cells[place] for place in (11, 22, 33)] == ["static_peak", "plimsoll", "static_peak"]
    assert cells[33:38] == ["static_peak", "inferencepool", "3", "of", "3"]
    least, middle, most = (float(cell.strip(",")) for cell in cells[5:8])
    assert 0 <= least <= middle <= most <= 100
    text = unescape(page.read_text())
    assert f"<h2>{title}</h2>" in text
    assert "<th>99% KEPT</th>" in text
    assert "<td>3 of 3</td>" in text


def test_the_same_seeds_give_the_same_bytes_and_one_has_nothing_of_several(llm: str, rates: str):
    asked = ("--routing", "service", "-o", "json")
    assert simulated(llm, rates, *SEEDS, *asked).out == simulated(llm, rates, *SEEDS, *asked).out
    assert "worlds" not in json.loads(simulated(llm, rates, *asked).out)
    assert "worlds" not in simulated(llm, rates, "--routing", "service").out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--seed", "1", "--seed", "2", "--seed", "1"), "--seed 1 is given twice"),
        (("--seed", "1", "--seed", "-1"), "-1 is not in the range x>=0"),
        (("--seed", "1,2"), "give --seed once for each world"),
    ],
)
def test_seeds_that_make_no_sense_are_told(llm: str, rates: str, asked: tuple[str, ...], said: str):
    ran = simulated(llm, rates, *asked)
    assert ran.code == 3
    assert said in ran.err


def test_a_world_in_which_nobody_comes_is_told_before_any_is_played(
    llm: str, rates: str, monkeypatch: pytest.MonkeyPatch
):
    def best(self: Comparison, name: str) -> Result:
        raise AssertionError(name)

    monkeypatch.setattr(Comparison, "best", best)
    seeds = [word for seed in range(30) for word in ("--seed", str(seed))]
    ran = simulated(llm, rates, *seeds, "--scale", "0.001")
    assert ran.code == 3
    assert "nothing arrives in the part that is replayed with seed" in ran.err


def test_what_was_done_when_it_was_stopped_is_told_and_so_is_what_is_missing(
    llm: str, rates: str, monkeypatch: pytest.MonkeyPatch
):
    best = Comparison.best

    def stopped(self: Comparison, asked: str) -> Result:
        if asked == "static_peak" and self.stage.world.seed == 1:
            raise KeyboardInterrupt
        return best(self, asked)

    monkeypatch.setattr(Comparison, "best", stopped)
    asked = (*SEEDS, "--routing", "service")
    ran = simulated(llm, rates, *asked)
    assert ran.code == 130
    out = " ".join(ran.out.split())
    assert "missing: static_peak behind service with seed 1; everything with seed 2" in out
    data = json.loads(simulated(llm, rates, *asked, "-o", "json").out)
    assert data["missing"] == [
        {"seed": seed, "routing": "service", "policy": policy}
        for seed, policy in ((1, "static_peak"), (2, "plimsoll"), (2, "static_peak"))
    ]
    done = [(one["seed"], one["policy"]) for one in data["worlds"]]
    assert done == [(3, "plimsoll"), (3, "static_peak"), (1, "plimsoll")]
