"""Every failure of an engine that a CPU can show, provoked on real vLLM below the supervisor: the word given against the word wanted.

The cases are the tests'; here all of them run, one after the other. Seconds are from the start of the container's program, or from
what is done to an engine that serves, to the reason being there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "e2e"), str(ROOT / "runtime")]  # programs there find one another by bare name

from engine_at_hand import AtHand, engine_at_hand  # noqa: E402
from failures import CASES, Case, provoked  # noqa: E402
from supervised import Supervised  # noqa: E402


def row(case: Case, engine: AtHand, logs: Path | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="failure-", dir=engine.folder) as made:
        folder = Path(made)
        running = Supervised(engine.python, engine.packed, folder)
        began = time.monotonic()
        about: dict[str, Any] = {"case": case.name, "wanted": case.word}
        try:
            found = provoked(case, running, folder)
        except (AssertionError, OSError, ValueError) as error:  # it serves, or left no word
            return {**about, "given": None, "right": False, "seconds": None, "message": str(error)[-2000:]}
        finally:
            if logs is not None:
                (logs / f"{case.name.replace(' ', '-')}.log").write_text(running.said())
    seconds = round(time.monotonic() - began, 1)
    return {
        **about,
        "given": found["word"],
        "right": found["word"] == case.word,
        "seconds": seconds,
        "message": found["message"],
        "remedy": found["remedy"],
        "evidence": found["evidence"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--only", metavar="TEXT", action="append", default=[], help="cases whose name or word has it"
    )
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keep what the engines print there")
    chosen = parser.parse_args()
    rows, left_out = [], []
    with engine_at_hand() as engine:
        for case in CASES:
            if chosen.only and not any(text in f"{case.name} {case.word}" for text in chosen.only):
                continue
            if case.root and os.geteuid() != 0:
                left_out.append(case.name)
                continue
            rows.append(row(case, engine, chosen.logs))
            if not chosen.json:
                print_row(rows[-1])
    right = sum(one["right"] for one in rows)
    if chosen.json:
        print(json.dumps({"cases": rows, "right": right, "of": len(rows), "left_out": left_out}, indent=1))
    else:
        print(
            f"{right} of {len(rows)} words are right; left out without root: {', '.join(left_out) or 'none'}"
        )
    return 0 if right == len(rows) else 1


def print_row(one: dict[str, Any]) -> None:
    mark = " " if one["right"] else "!"
    took = "?" if one["seconds"] is None else f"{one['seconds']:.1f}"
    print(
        f"{mark} {one['case']:45} {one['wanted']:22} {one['given'] or '?':22} {took:>6} s  {one['message'][:160]}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
