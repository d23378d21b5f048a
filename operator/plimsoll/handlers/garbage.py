"""Makes Python's collector of reference cycles run less often.

A tick of the control loop over thousands of deployments makes a million values and drops them again. By Python's own thresholds that would
trigger several full collections in each tick, which find nothing and take half as long as reading Prometheus' answers.
"""

from __future__ import annotations

import gc
from typing import Final

YOUNG: Final = 5_000
"""New values between two collections of the youngest generation, in place of Python's 700. A collection takes time in proportion to its
values, so a larger number would save nothing; and a few dozen uncollected values may hold whole answers of some megabytes."""
OLDER: Final = 100
"""Collections of the youngest generation for each of the next one, in place of Python's 10."""


def collect_seldom() -> None:
    """To be called once everything has been loaded: from then on code, catalogues and what was seen are not looked through any more, which
    would stop the event loop for a tenth of a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, OLDER, 10)
