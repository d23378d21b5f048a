"""How often Python looks for values that hold only each other: seldom, since nearly all of a large fleet's are let go at once.

One tick of control over thousands of deployments makes a million values and drops them. By Python's own counts that is
reason to look through all that the program holds, several times a tick, for nothing: half of the time it takes to read a
Prometheus' answers.
"""

from __future__ import annotations

import gc
from typing import Final

YOUNG: Final = 5_000
"""New values between two looks at these alone, in place of 700. A look costs by the value, so that more would save nothing; and
what sixty of them hold may be a whole answer of some megabytes."""
OLDER: Final = 100
"""Such looks before one at what they left, in place of 10."""


def settled() -> None:
    """Code, catalogues and what was seen are no garbage; to look through them for some stops all else for a tenth of a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, OLDER, 10)
