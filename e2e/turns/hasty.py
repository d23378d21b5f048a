"""The operator as it is, but for how long it waits for what may never come: minutes in life, seconds for a test of what it does then.

A program as well, which takes the operator's own arguments after what it waits for.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from functools import partial
from unittest.mock import patch

from plimsoll import __main__ as operator
from plimsoll.control.rollout import groups
from plimsoll.handlers import events, health, life
from plimsoll.kube import watching
from plimsoll.kube.door import SILENCE_SECONDS, Door


def hasty(
    *,
    silence: float = SILENCE_SECONDS,
    relist: float = watching.RELIST_SECONDS,
    deaf: float = health.DEAF_SECONDS,
    half: float = groups.HALF_SECONDS,
) -> tuple[str, ...]:
    """The program and what it waits for, in seconds: a watch that says nothing, the next list of what is watched, a watch that missed
    all that was found by looking, and the nodes of a group that has some of them."""
    return __file__, json.dumps({"silence": silence, "relist": relist, "deaf": deaf, "half": half})


def main() -> None:
    waits = json.loads(sys.argv.pop(1))
    with ExitStack() as stack:
        for module, name, value in (
            (life, "Door", partial(Door, silence_seconds=waits["silence"])),
            (events, "SILENCE_SECONDS", waits["silence"]),
            (watching, "RELIST_SECONDS", waits["relist"]),
            (watching, "RELIST_SHARE", watching.RELIST_SHARE * waits["relist"] / watching.RELIST_SECONDS),
            (health, "DEAF_SECONDS", waits["deaf"]),
            (groups, "HALF_SECONDS", waits["half"]),
        ):
            stack.enter_context(patch.object(module, name, value))
        operator.main()


if __name__ == "__main__":
    main()
