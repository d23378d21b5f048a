"""Random users, nodes and outages against the operator on a real API server: how many stories end as they must, and which do not.

A story that breaks is printed, shortened to what still breaks, and can be played again by `--story`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
for _room in ("e2e", "runtime"):  # programs there find one another by bare name, as those here do
    sys.path.insert(0, str(ROOT / _room))

from arguments import count, from_zero  # noqa: E402
from cluster import Cluster  # noqa: E402
from storm.playing import Outcome, play, shrunk  # noqa: E402
from storm.steps import Story, draw  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=count, default=20, help="so many stories")
    parser.add_argument("--first", type=from_zero, default=1, help="the first one's seed")
    parser.add_argument("--bursts", type=count, default=4, help="times that it is waited and judged")
    parser.add_argument("--length", type=count, default=6, help="most steps of a burst")
    parser.add_argument("--story", type=printed_story, help="play this one instead, as it was printed")
    parser.add_argument(
        "--shrink", action="store_true", help="leave out of a broken story what it does not need"
    )
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    if chosen.story is not None:
        stories = [chosen.story]
    else:
        seeds = range(chosen.first, chosen.first + chosen.seeds)
        stories = [draw(seed, bursts=chosen.bursts, length=chosen.length) for seed in seeds]
    found: list[Outcome] = []
    with Cluster(audit=True) as cluster:
        cluster.install(ROOT / "crds" / "llmdeployments.plimsoll.dev.yaml")
        for story in stories:
            outcome = play(cluster, story)
            if outcome.faults and chosen.shrink:
                outcome = shrunk(cluster, outcome)
            found.append(outcome)
            tell(outcome)
    broken = [one for one in found if one.faults]
    summary = {
        "seeds": len(found),
        "steps": sum(one.story.steps for one in found),
        "broken": [one.story.seed for one in broken],
        "load_1m": round(os.getloadavg()[0], 2),
    }
    print(json.dumps(summary, indent=None if chosen.json else 1))
    return 1 if broken else 0


def printed_story(text: str) -> Story:
    """Out of a file."""
    try:
        return Story.read(Path(text).read_text("utf-8"))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise argparse.ArgumentTypeError(f"{text} holds no story as it was printed: {error}") from None


def tell(outcome: Outcome) -> None:
    how = "ends as it must" if not outcome.faults else f"breaks after burst {outcome.burst}"
    print(
        f"seed {outcome.story.seed}: {outcome.story.steps} steps, {outcome.seconds:.0f} s, {how}",
        file=sys.stderr,
    )
    if outcome.faults:
        for fault in outcome.faults:
            print(f"  {fault}", file=sys.stderr)
        print(f"  {outcome.story.text()}", file=sys.stderr)
        print(outcome.log[-6000:], file=sys.stderr)
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
