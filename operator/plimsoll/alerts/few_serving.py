"""Fewer replicas serve than start or fail, for longer than a model takes to load: what serves carries what all were wanted for."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import NAMED, WHO, Alert, Level
from plimsoll.alerts.records import READY, REPLICAS, SAME, each

_MISSING: Final = each("sum", f'{REPLICAS}{{state=~"starting|failed"}}')
"""Those that have their GPUs. Whoever waits for some is told of by alerts of their own, and needs another cure."""

FEW_SERVING: Final = Alert(
    name="FewServing",
    summary=f"Fewer replicas of {WHO} serve than start or fail.",
    description=(
        "{{ $value }} replicas serve, and more than that have had their GPUs for long and do not: they load more slowly than ever before, or fail to start "
        f"again and again. `plimsoll doctor {NAMED}` says why, and the logs of their pods."
    ),
    levels=(Level("warning", f"{READY} > 0 and {SAME} {READY} < {SAME} {_MISSING}", "45m"),),
)
