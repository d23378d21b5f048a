"""A simulation whose parts are played side by side: the same answer, one bar, and no process that stays."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import plimsoll as package
from plimsoll import names
from plimsoll.cli.simulate_bar import Bar
from plimsoll.cli.simulate_play import HELD_MOST, LIGHT, play, usual_jobs
from plimsoll.cli.simulate_side import parts_of
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.policies.registry import Stage
from plimsoll.simulate.router import Routing
from plimsoll.simulate.seeds import Case
from plimsoll.simulate.stages import Stages
from plimsoll.simulate.traces import RateTrace
from tests.cli.running import plimsoll
from tests.cli.test_plan import resource
from tests.cli.test_simulate import SPEC, llm, simulated
from tests.cli.test_simulate_seeds import SEEDS, rates
from tests.simulate.worlds import SCENARIO

__all__ = ["llm", "rates"]

TRACE = RateTrace(name="rates", at=(0.0, 60.0), rates=(2.0, 3.0), cvs=(1.0, 1.0), last_s=60.0)
CASES = tuple(
    Case(seed=seed, routing=Routing.POOL, policy=policy)
    for seed in (1, 2)
    for policy in ("plimsoll", "static_peak", "static_mean", "keda")
)


class Failed(Exception):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken(Stages):
    """The world of seed 2 fails, or its process is killed."""

    killed: bool = False

    def stage(self, seed: int, arrivals: Arrivals | None = None) -> Stage:
        if seed == 2 and self.killed:
            time.sleep(2.0)  # the first world is done
            os.kill(os.getpid(), signal.SIGKILL)
        if seed == 2:
            raise Failed("seed 2")
        return Stages.stage(self, seed, arrivals)


def test_the_answer_is_that_of_one_after_the_other_to_the_byte(llm: str, rates: str):
    policies = ("plimsoll", "static_peak", "static_mean", "hpa", "oracle")
    asked = [*SEEDS, "-o", "json", *(word for name in policies for word in ("--policy", name))]
    beside = simulated(llm, rates, *asked, "--jobs", "2")
    assert (beside.code, beside.err) == (0, "")
    assert beside.out == simulated(llm, rates, *asked, "-j", "1").out


def test_what_may_sleep_be_retuned_and_crash_on_several_sets_is_the_same_side_by_side(
    rates: str, tmp_path: Path
):
    file, fleet = tmp_path / "llm.yaml", tmp_path / "fleet.yaml"
    scaling = {"max": 6, "zero": {"wake": {"annotation": True}, "afterSeconds": 300}}
    file.write_text(resource("chat", **{**SPEC, "scaling": scaling, "tuning": {"mode": "auto"}}))
    pools = [
        {"name": "h100", "gpuProduct": "H100-SXM-80GB", "gpusPerNode": 2, "nodes": 1},
        {"name": "l40s", "gpuProduct": "L40S-48GB", "gpusPerNode": 4, "nodes": 2},
    ]
    kind = {"apiVersion": names.API_VERSION, "kind": "Fleet"}
    pools = [{"cpu": "96", "memory": "768Gi", **one} for one in pools]
    fleet.write_text(yaml.safe_dump({**kind, "pools": pools}))
    asked = ("simulate", "-f", str(file), "--snapshot", str(fleet), "--trace", rates, "--crashes", "20")
    beside = plimsoll(*asked, "--jobs", "2")
    assert (beside.code, beside.err) == (0, "")
    assert beside.out == plimsoll(*asked, "--jobs", "1").out


def test_constant_numbers_are_one_part_as_they_are_found_by_the_same_runs():
    parts = parts_of(CASES)
    assert [len(part) for part in parts] == [1, 2, 1, 1, 2, 1]
    assert tuple(case for part in parts for case in part) == CASES


def test_processes_are_begun_only_where_they_are_worth_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.cli.simulate_play._cores", lambda: 16)
    assert usual_jobs(LIGHT // 4 - 1, 4) == 1
    assert usual_jobs(LIGHT, 4) == 16
    assert usual_jobs(HELD_MOST // 3, 4) == 3
    assert usual_jobs(10 * HELD_MOST, 4) == 1


@pytest.mark.parametrize(
    ("limit", "cores"), [("200000 100000", 2), ("50000 100000", 1), ("max 100000", 16), (None, 16)]
)
def test_a_container_is_given_no_more_processes_than_its_limit_of_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str | None, cores: int
):
    if limit is not None:
        (tmp_path / "cpu.max").write_text(limit)
    monkeypatch.setattr("plimsoll.cli.simulate_play.CPU_LIMIT", tmp_path / "cpu.max")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)), raising=False)
    assert usual_jobs(requests=1_000_000, cases=20) == cores


def test_an_error_in_a_world_is_told_as_it_is_and_ends_the_rest():
    stages = Broken(scenario=SCENARIO, trace=TRACE)
    for jobs in (1, 2):
        with pytest.raises(Failed, match="seed 2"):
            play(CASES, stages, stages.arrivals(1), jobs)


def test_a_process_that_is_killed_is_told_beside_what_was_done(capsys: pytest.CaptureFixture[str]):
    stages = Broken(scenario=SCENARIO, trace=TRACE, killed=True)
    done = play(CASES, stages, stages.arrivals(1), 2)
    assert [one.policy for one in done.results[Routing.POOL]] == [case.policy for case in CASES[:4]]
    assert [one.case for one in done.worlds] == list(CASES[:4])
    assert done.missing == CASES[4:]
    assert "ended from outside, as on a machine that runs out of memory" in capsys.readouterr().err


def test_the_bar_counts_what_is_done_and_never_goes_back(monkeypatch: pytest.MonkeyPatch):
    told: list[float] = []
    said: list[str] = []

    class Watched(Bar):
        def name(self, name: str) -> None:
            said.append(name)

        def __call__(self, now: float) -> None:
            told.append(now)

    monkeypatch.setattr("plimsoll.cli.simulate_side.Bar", Watched)
    monkeypatch.setattr("plimsoll.cli.simulate_side.LOOK_S", 0.002)
    stages = Stages(scenario=SCENARIO, trace=TRACE)
    play(CASES, stages, stages.arrivals(1), 2)
    assert told == sorted(told)
    assert any(now % 1 for now in told), "what is under way counts for as far as it is"
    assert told[-1] == len(CASES)
    assert said[0] == "0 of 8 done, 2 under way"
    assert said[-1] == "8 of 8 done, 0 under way"


def begun(llm: str, tmp_path: Path, *arguments: str) -> "subprocess.Popen[str]":
    """The command in a process group of its own, as a shell begins it, once two processes have begun."""
    trace = tmp_path / "long.csv"
    trace.write_text("t_s,rate_rps\n0,30\n5000,30\n")
    command = (sys.executable, "-m", "plimsoll.cli", "simulate", "-f", llm, "--fleet", "8xL40S")
    asked = ("--trace", str(trace), "--jobs", "2", "--routing", "service", *arguments)
    room = str(Path(package.__file__).parents[1])
    ran = subprocess.Popen(
        (*command, *asked),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": room},
        start_new_session=True,
    )
    until(lambda: len(playing(ran.pid)) == 2)
    return ran


def playing(group: int) -> list[int]:
    """Processes of a group that play; a zombie, which nobody has asked about yet, plays no more."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, at, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            words = (folder / "cmdline").read_text()
        except OSError:
            continue
        if int(at) == group and state != "Z" and "spawn_main" in words:
            found.append(int(folder.name))
    return found


def until(so: Any, within_s: float = 60.0) -> None:
    end = time.monotonic() + within_s
    while not so():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("wait_s", [0.0, 1.0], ids=["while they begin", "while they play"])
def test_ctrl_c_ends_all_at_once_and_in_one_line(llm: str, tmp_path: Path, wait_s: float):
    ran = begun(llm, tmp_path)
    time.sleep(wait_s)
    os.killpg(ran.pid, signal.SIGINT)
    out, err = ran.communicate(timeout=20)
    assert (ran.returncode, out) == (130, "")
    assert err.strip() == "note: stopped by Ctrl-C before there was an answer"
    until(lambda: not playing(ran.pid), 5.0)


def test_ctrl_c_tells_what_was_done_by_then_whatever_its_place(monkeypatch: pytest.MonkeyPatch):
    stages = Stages(scenario=SCENARIO, trace=TRACE)
    tell_of = Bar.name

    def stopped(self: Bar, name: str) -> None:
        tell_of(self, name)
        if not name.startswith("0"):
            raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "name", stopped)
    turned = (CASES[1], CASES[0], *CASES[3:])
    done = play(turned, stages, stages.arrivals(1), 2)
    assert done.worlds
    assert [one.case for one in done.worlds] == [case for case in turned if case not in done.missing]
    assert len(done.worlds) + len(done.missing) == len(turned)
    assert not multiprocessing.active_children()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_processes_end_with_the_one_that_began_them_though_it_was_killed(llm: str, tmp_path: Path):
    ran = begun(llm, tmp_path)
    time.sleep(1.0)
    ran.kill()
    ran.communicate(timeout=20)
    until(lambda: not playing(ran.pid), 10.0)
