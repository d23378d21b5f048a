"""Retunes in `plimsoll simulate`: told with their reasons, and bounded by what the user and the admin allow."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from plimsoll import names
from tests.cli.running import Ran, plimsoll
from tests.cli.test_plan import resource
from tests.cli.test_simulate import SPEC


@pytest.fixture
def long_answers(tmp_path: Path) -> str:
    """Ten times as long as declared, so that what runs at once outgrows the cache."""
    file, random = tmp_path / "long.csv", Random(3)
    rows = "".join(
        f"{2 * place:.1f},{random.randint(200, 800)},{random.randint(500, 4000)}\n" for place in range(1800)
    )
    file.write_text("arrival_s,input_tokens,output_tokens\n" + rows)
    return str(file)


def preempting(tmp_path: Path, **tuning: Any) -> str:
    file = tmp_path / "preempting.yaml"
    spec = {**SPEC, "slo": {}, "scaling": {"min": 2, "max": 2}, "tuning": tuning}
    file.write_text(resource("chat", "meta-llama/Llama-3.3-70B-Instruct", **spec))
    return str(file)


def retuned(llm: str, trace: str, *arguments: str) -> Ran:
    alone = ("--routing", "inferencepool", "--policy", "plimsoll")
    return plimsoll("simulate", "-f", llm, "--fleet", "8xA100-80GB", "--trace", trace, *alone, *arguments)


def test_a_retune_is_told_step_by_step_with_its_reasons_in_every_form(long_answers: str, tmp_path: Path):
    llm, page = preempting(tmp_path), tmp_path / "out.html"
    said = retuned(llm, long_answers, "--html", str(page)).out
    assert "what plimsoll retuned" in said
    assert "RetunePlanned" in said
    assert "of the engines' settings, watermark" in " ".join(said.split())
    (ours,) = json.loads(retuned(llm, long_answers, "-o", "json").out)["results"]
    first = ours["retunes"][0]
    assert (first["what"], first["reason"]) == ("watermark", "RetunePlanned")
    text = page.read_text()
    assert text.count('<line class="tune"') == 5 * len(ours["retunes"]), "in each of its timelines"
    assert f"{len(ours['retunes'])} steps of retunes" in text


def test_what_the_user_does_not_allow_is_not_retuned_and_a_dry_run_says_what_would_be(
    long_answers: str, tmp_path: Path
):
    assert "retune" not in retuned(preempting(tmp_path, mode="off"), long_answers).out
    dry = " ".join(retuned(preempting(tmp_path, mode="dryRun"), long_answers).out.split())
    assert "RetuneSuggested" in dry
    assert "would have been tried, and is for a person" in dry


def test_the_admin_says_how_many_retunes_there_may_be(long_answers: str, tmp_path: Path):
    admin = tmp_path / "admin.yaml"
    config = {"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND, "restarts": {"retunesPerDay": 0}}
    admin.write_text(yaml.safe_dump(config))
    assert "retune" not in retuned(preempting(tmp_path), long_answers, "--config", str(admin)).out
