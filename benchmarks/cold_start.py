"""How long the real engine takes from its start until it answers: as it is, and below the supervisor, turn by turn in one run.

A small model on CPUs, made on the spot. `restart` is the engine that a retune starts, with compilation: `before` is the one that it
takes the place of, `cold` finds an empty cache, `warm` the one that `before` left; it needs a C++ compiler and is null without. Times
are of the clock, since a person waits for them; the load of the machine stands beside, and medians of few runs are all that is claimed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "e2e"), str(ROOT / "runtime")]  # programs there find one another by bare name

from arguments import count  # noqa: E402
from cluster.engine import ENVIRONMENT  # noqa: E402
from cluster.processes import Ports  # noqa: E402
from engine_at_hand import AtHand, engine_at_hand  # noqa: E402
from models import dense  # noqa: E402
from supervised import SERVE  # noqa: E402

AIM_SECONDS: Final = 2.0
PATIENCE_SECONDS: Final = 600.0
POLL_SECONDS: Final = 0.05
ALONE_RUNS: Final = 11
BEFORE: Final = 64
RETUNED: Final = 48
"""Requests at once, before a retune and after it."""


class Bench:
    def __init__(self, engine: AtHand) -> None:
        self._python, self._packed, self._folder = engine.python, engine.packed, engine.folder
        self._model = dense().write(self._folder / "dense")
        self.facts: dict[str, Any] = {}
        """Of the last supervised start."""

    def start(self, *words: str, supervised: bool, home: Path, compiles: bool = False) -> float:
        """Seconds until it answers; then it is ended."""
        ports = Ports()
        port, side = ports.take(), ports.take()
        ports.release()
        engine: list[str | Path] = [self._python, *SERVE, self._model, "--load-format=dummy"]
        engine += ["--max-model-len=4096", "--host=127.0.0.1", f"--port={port}", *words]
        own: list[str | Path] = [sys.executable, "-I", "-S", self._packed, "serve"]
        own += [f"--port={side}", "--grace=5", "--"]
        environment = {"PATH": os.defpath, "HOME": str(home), **ENVIRONMENT}
        if compiles:
            del environment["TORCHDYNAMO_DISABLE"]
        began = time.monotonic()
        with (self._folder / "log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - the engine of this program's own making
                [*(own if supervised else []), *engine],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        try:
            while not _answers(f"http://127.0.0.1:{port}/health"):
                if process.poll() is not None or time.monotonic() - began > PATIENCE_SECONDS:
                    raise SystemExit((self._folder / "log").read_text()[-3000:])
                time.sleep(POLL_SECONDS)
            took = time.monotonic() - began
            if supervised:
                with urllib.request.urlopen(f"http://127.0.0.1:{side}/facts", timeout=10) as answer:
                    self.facts = json.load(answer)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_SECONDS)
        return took

    def alone(self) -> tuple[float, float]:
        """Seconds, and those of a core, of the supervisor around a program that ends at once: all that it adds before an engine and
        after it."""
        argv = [sys.executable, "-I", "-S", str(self._packed), "serve", "--port=0"]
        began, used = time.monotonic(), _used()
        subprocess.run([*argv, "--termination-log=/dev/null", "--", "true"], check=False, capture_output=True)  # noqa: S603
        return time.monotonic() - began, _used() - used


def _used() -> float:
    """Seconds of a core, by all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - this machine
            return bool(answer.status == 200)
    except OSError:
        return False


def measure(bench: Bench, runs: int, scratch: Path) -> dict[str, Any]:
    plain: list[float] = []
    supervised: list[float] = []
    for number in range(runs):
        # Whoever goes second finds files in memory, so they take turns in that too.
        for with_us in (False, True) if number % 2 == 0 else (True, False):
            took = bench.start("--enforce-eager", supervised=with_us, home=scratch)
            (supervised if with_us else plain).append(took)
            kind = "supervised" if with_us else "plain"
            print(f"{kind}: {took:.1f} s, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    alone, used = zip(*(bench.alone() for _ in range(ALONE_RUNS)), strict=True)
    return {
        "alone_s": round(statistics.median(alone), 2),
        "alone_most_s": round(max(alone), 2),
        "alone_core_s": round(statistics.median(used), 2),
        "plain_s": round(statistics.median(plain), 1),
        "supervised_s": round(statistics.median(supervised), 1),
        "plain_runs_s": [round(one, 1) for one in plain],
        "supervised_runs_s": [round(one, 1) for one in supervised],
    }


def restart(bench: Bench, scratch: Path) -> dict[str, Any]:
    """The engine that a retune starts, another number of requests at once than the one before it had: where nothing is kept, and where
    the one before kept what it compiled."""
    if shutil.which("g++") is None:
        return {"cold_s": None, "warm_s": None, "why": "no C++ compiler is here"}
    found: dict[str, Any] = {}
    for kind, sequences in (("before", BEFORE), ("cold", RETUNED), ("warm", RETUNED)):
        home = scratch / ("alone" if kind == "cold" else "kept")
        home.mkdir(exist_ok=True)
        took = bench.start(f"--max-num-seqs={sequences}", supervised=True, home=home, compiles=True)
        found[f"{kind}_s"] = round(took, 1)
        found[f"{kind}_compile_cache"] = bench.facts["measured"]["compileCache"]
        # The engine's own word is cold as soon as it compiles anything, with however many kernels that it found.
        phases = {phase["name"]: phase["seconds"] for phase in bench.facts["phases"]}
        found[f"{kind}_compile_s"] = phases.get("compile")
        print(f"restart, {kind}: {took:.1f} s, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=count, default=3, help="starts of each kind")
    parser.add_argument("--no-restart", action="store_true", help="leave compilation out")
    chosen = parser.parse_args()
    with engine_at_hand() as engine:
        bench = Bench(engine)
        homes = [engine.folder / name for name in ("home", "compiled")]
        for home in homes:
            home.mkdir()
        report = measure(bench, chosen.runs, homes[0])
        report["restart"] = {} if chosen.no_restart else restart(bench, homes[1])
    report["aim_s"], report["load"] = AIM_SECONDS, round(os.getloadavg()[0], 1)
    if chosen.json:
        print(json.dumps(report))
    else:
        print(
            f"plain {report['plain_s']} s, supervised {report['supervised_s']} s (aim: at most {AIM_SECONDS} s more)"
        )
        print(
            f"the supervisor alone, around nothing: {report['alone_s']} s, at most {report['alone_most_s']} s;"
            f" {report['alone_core_s']} s of a core"
        )
        print(f"restart with compilation: {report['restart']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
