"""`python -m standin [OPTIONS] serve MODEL FLAGS...`: a stand-in engine with the command line of `vllm serve`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from plimsoll.simulate.interference import NONE
from standin.process import Fate, run
from standin.start import NEWEST
from standin.told import TIMES, read_times


def main(args: list[str]) -> int:
    place = args.index("serve") if "serve" in args else len(args)
    parser = argparse.ArgumentParser(prog="python -m standin", description=__doc__)
    parser.add_argument("--version", default=NEWEST, help=f"of vLLM (default: {NEWEST})")
    parser.add_argument(
        "--gpu", help="size the cache by the memory ledger on this GPU, for a model of the catalogue"
    )
    parser.add_argument(
        "--taken-gib", type=float, default=0.0, help="of this GPU's memory, by others (default: none)"
    )
    parser.add_argument("--times", type=Path, metavar="FILE", help="step times as a fit wrote them, in JSON")
    parser.add_argument("--start-seconds", type=float, default=0.0, help="until it listens")
    for name, what in (("crash", "ends with 1"), ("oom", "is killed"), ("hang", "moves no token")):
        parser.add_argument(f"--{name}-after", type=float, metavar="SECONDS", help=f"it {what}")
    chosen = parser.parse_args(args[:place])
    if place == len(args):
        parser.error("say `serve MODEL`, with vLLM's own flags behind it")
    times, interference = (
        (TIMES, NONE) if chosen.times is None else read_times(chosen.times.read_text("utf-8"))
    )
    fate = Fate(
        version=chosen.version,
        gpu=chosen.gpu,
        taken_gib=chosen.taken_gib,
        times=times,
        interference=interference,
        start_s=chosen.start_seconds,
        crash_s=chosen.crash_after,
        oom_s=chosen.oom_after,
        hang_s=chosen.hang_after,
    )
    return run(args[place + 1 :], fate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
