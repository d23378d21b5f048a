"""The operator ends after every single write of what it does: how many points, how many of them end well, and how soon.

The whole matrix takes minutes; `make test` takes every fifth point of it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "e2e"))  # programs there find one another by bare name, as those here do

from arguments import amount, count  # noqa: E402
from turns.crashes import POINTS, laboratory, matrix  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--every", type=count, default=1, help="only each so manieth write")
    parser.add_argument("--path", action="append", choices=sorted(POINTS), help="only these; may be repeated")
    parser.add_argument("--quiet-seconds", type=amount, default=60.0, help="no write may come for so long")
    chosen = parser.parse_args()
    with laboratory() as cluster, tempfile.TemporaryDirectory() as folder:
        outcome = matrix(
            cluster,
            Path(folder),
            every=chosen.every,
            quiet_seconds=chosen.quiet_seconds,
            paths=tuple(chosen.path or ()),
        )
    found = {**dataclasses.asdict(outcome), "load_1m": round(os.getloadavg()[0], 2)}
    print(json.dumps(found, indent=None if chosen.json else 1))
    return 1 if outcome.faults or outcome.late_writes else 0


if __name__ == "__main__":
    sys.exit(main())
