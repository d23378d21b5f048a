"""The loop closed for real: load that makes a real engine preempt, a real Prometheus and its alert, a retune with a canary, and what it
brought; and a rung that brings nothing, as the user's own patch of the pod says otherwise, which is rolled back.

`loop` runs the operator on a cluster with real nodes until it has tried, judged and kept a change; `bad` until it has taken one back.
`ratios` runs the engine as it was and as the loop left it in turns, the same requests for both, since one machine differs by more from
one minute to the next than is looked for: at four fifths of what it can, and with more users than places. All are done unless one is asked for; what was found goes from one to the other by `--kept`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "e2e"), str(ROOT / "runtime")]  # programs there find one another by bare name

import arguments  # noqa: E402
from cluster.binaries import Places  # noqa: E402
from cluster.binaries.progress import Progress  # noqa: E402
from cluster.engine import EngineUnavailable  # noqa: E402
from cluster.node import Unavailable  # noqa: E402
from preempting import ALERT, Load, spec  # noqa: E402
from retune_ground import CHAT, Ground, ground  # noqa: E402
from retune_ratios import ratios  # noqa: E402

PARTS: Final = ("loop", "bad", "ratios")


def loop(on: Ground, replicas: int, users: int) -> dict[str, Any]:
    on.desk.apply(CHAT, **spec(replicas, {"mode": "auto"}))
    before = on.serving()
    found: dict[str, Any] = {"argv_before": on.argv(before)}
    with Load(on.url(), users) as load:
        on.preempts(load)
        on.until("an alert that was heard", lambda: on.heard(ALERT))
        on.say(f"{ALERT} fires, and the operator was told")
        if on.status().get("tuning"):
            raise SystemExit("a retune began before any alert was heard")
        on.ended("Done")
        on.until("served by the new set alone", lambda: before not in on.desk.deployments())
        (after,) = on.desk.deployments()
        found["argv_after"] = on.argv(after)
        found["replicas_added"] = sum(on.desk.deployments().values()) - replicas
        found["preempted_share_before"], found["preempted_share_after"] = on.shares(before, after)
    found["rungs"] = on.rungs()
    on.say(f"{after} serves: {' '.join(on.argv(after))}")
    return found


def bad(on: Ground, replicas: int, users: int) -> dict[str, Any]:
    # No other rung: what the patch says again is the only one that changes nothing.
    tuning = {"mode": "auto", "allow": ["maxSequences"]}
    on.desk.apply(CHAT, **spec(replicas, tuning, stubborn=True))
    served = on.serving()
    with Load(on.url(), users) as load:
        on.preempts(load)
        on.ended("Failed")
        on.until("as it was", lambda: on.desk.deployments() == {served: replicas})
    return {"rungs": on.rungs()}


def joined(report: dict[str, Any], part: str, found: dict[str, Any]) -> dict[str, Any]:
    """With what a part found now. Rungs of an earlier run of it go, as its other figures do."""
    others = [rung for rung in report["rungs"] if rung.get("part", part) != part]
    return {**report, **found, "rungs": [*others, *({**rung, "part": part} for rung in found["rungs"])]}


def keep(report: dict[str, Any], file: Path | None) -> None:
    """As soon as a part is over: the next one may find that something of a cluster or an engine cannot be had, or not come to its end."""
    report["machine"] = round(os.getloadavg()[0], 1)
    if file is not None:
        file.write_text(json.dumps(report, indent=1))


def table(report: dict[str, Any]) -> str:
    apart = ("rungs", "runs", "crowded")
    lines = [f"{name:<24} {value}" for name, value in report.items() if name not in apart]
    rungs, runs = report.get("rungs", ()), report.get("runs", ())
    lines += ["{state:<8} {setting} {before} to {after}: {reason}".format(**rung) for rung in rungs]
    lines += ["  ".join(f"{key} {value}" for key, value in run.items()) for run in runs]
    if "crowded" in report:
        lines += ["", "with more users than places:", table(report["crowded"])]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=PARTS, help="one part alone")
    parser.add_argument(
        "--kept", type=arguments.kept_file, metavar="FILE", help="what was found so far, read and written"
    )
    parser.add_argument("--replicas", type=arguments.count, default=1)
    parser.add_argument("--users", type=arguments.count, default=32, help="that ask at once")
    parser.add_argument("--seeds", type=arguments.count, default=3)
    parser.add_argument("--requests", type=arguments.count, default=128, help="of each run")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # or a cluster would be left
    places, progress = Places.of(os.environ), Progress(sys.stderr)  # noqa: TID251 - the entry point
    parts = (chosen.only,) if chosen.only else PARTS
    report: dict[str, Any] = {"rungs": []}
    if chosen.kept and chosen.kept.exists():
        report |= json.loads(chosen.kept.read_text())
    if "loop" not in parts and "ratios" in parts and "argv_after" not in report:
        parser.error("ratios are of the engines that the loop found: run that first, with the same --kept")
    size = {"users": chosen.users}
    with tempfile.TemporaryDirectory(prefix="plimsoll-retune-") as name:
        try:
            for part, run in (("loop", loop), ("bad", bad)):
                if part in parts:
                    folder = Path(name) / part
                    folder.mkdir()
                    with ground(folder, places, progress) as on:
                        found = run(on, chosen.replicas, **size)
                    report = joined(report, part, found)
                    keep(report, chosen.kept)
            if "ratios" in parts:
                both = report["argv_before"], report["argv_after"]
                report |= ratios(*both, Path(name), seeds=chosen.seeds, requests=chosen.requests, **size)
                keep(report, chosen.kept)
        except (Unavailable, EngineUnavailable) as why:
            print(why, file=sys.stderr)
            return 1
    print(json.dumps(report, indent=1) if chosen.json else table(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
