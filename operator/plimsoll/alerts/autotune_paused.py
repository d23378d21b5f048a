"""Retuning failed again and again, and waits for a person."""

from __future__ import annotations

from typing import Final

from plimsoll import names
from plimsoll.alerts.base import WHO, Alert, Level
from plimsoll.alerts.records import CONDITION

AUTOTUNE_PAUSED: Final = Alert(
    name="AutotunePaused",
    summary=f"Retuning of {WHO} has paused.",
    description=(
        "Several changes in a row were tried, judged worse and rolled back, as the condition AutotunePaused says. "
        f'Read status.tuningHistory; then clear it with the annotation {names.ANNOTATION_RESET}, or set spec.tuning.mode: "off".'
    ),
    levels=(Level("warning", f'{CONDITION}{{type="{names.AUTOTUNE_PAUSED}"}} == 1', "5m"),),
)
