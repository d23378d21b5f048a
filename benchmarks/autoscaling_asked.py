"""What `autoscaling` is asked for on its command line, and what of it cannot be, which is told before the hours of the work."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from arguments import amount, count, from_zero, lines_kept
from autoscaling_cells import LEAPS, PUBLISHED, RUSHES, SYNTHETIC
from plimsoll.simulate.policies.registry import KINDS
from plimsoll.simulate.router import Routing

MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-30B-A3B-Instruct-2507",
    "meta-llama/Llama-3.3-70B-Instruct",
)
GPUS = ("H100", "A100-80GB")


def asked(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "traces",
        nargs="*",
        metavar="TRACE",
        help="a file, in a form that `plimsoll simulate --help` tells; or one that needs none: "
        f"{', '.join((*SYNTHETIC, LEAPS, RUSHES))}, or {' and '.join(PUBLISHED)}, as WVA's authors publish runs of them, at their "
        f"own size (default: {' and '.join(SYNTHETIC)}, of two hours each)",
    )
    parser.add_argument(
        "--seeds",
        type=count,
        default=5,
        help="worlds that each cell is played in, drawn around the planner's belief; what is told are means over them (default 5)",
    )
    parser.add_argument(
        "--sweep-seeds",
        type=from_zero,
        default=5,
        help="seeds with which parameters are swept (default 5, all)",
    )
    parser.add_argument(
        "--models",
        nargs="+",
        default=list(MODELS),
        help=f"as the hub names them (default {', '.join(MODELS)})",
    )
    parser.add_argument("--gpus", nargs="+", default=list(GPUS), help=f"(default {', '.join(GPUS)})")
    parser.add_argument(
        "--policies",
        nargs="+",
        default=list(KINDS),
        choices=list(KINDS),
        help="who decides the number of replicas (default: all)",
    )
    parser.add_argument(
        "--replicas", type=count, default=6, help="that the busiest ten minutes need (default 6)"
    )
    parser.add_argument(
        "--begin", type=count, help="replicas that a published run begins with (default 1, as theirs)"
    )
    parser.add_argument("--days", type=amount, help="of longer traces (default: all)")
    parser.add_argument(
        "--routing",
        choices=[str(one) for one in Routing],
        default=str(Routing.SERVICE),
        help="who chooses a replica: a Service, by chance (default), or an InferencePool, the least loaded",
    )
    parser.add_argument(
        "--connections",
        choices=("closed", "kept"),
        default="closed",
        help="to a Service: closed after each answer, as engines do that Plimsoll starts (default), or kept for minutes",
    )
    parser.add_argument(
        "--jobs",
        type=count,
        default=os.cpu_count() or 1,
        help="processes that play side by side (default: as many as cores)",
    )
    parser.add_argument(
        "--resume",
        type=lines_kept,
        metavar="FILE",
        help="keep what is done here, and go on from it",
    )
    parser.add_argument(
        "--kept",
        type=_printed,
        metavar="FILE",
        help="simulate nothing, print the tables of what --resume keeps there",
    )
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    chosen = parser.parse_args()
    if chosen.resume is not None:
        for trace in chosen.traces:
            if chosen.resume.exists() and Path(trace).exists() and chosen.resume.samefile(trace):
                parser.error(f"--resume {chosen.resume} is a trace that is played; name another file")
    return chosen


def _printed(text: str) -> Path:
    path = Path(text)
    if not path.exists() or path.is_dir():  # a pipe will do
        raise argparse.ArgumentTypeError(f"no file {text}; name one that --resume has written")
    return path
