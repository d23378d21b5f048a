"""Nothing will change until a person acts, and the resource says what is to be done."""

from __future__ import annotations

from typing import Final

from plimsoll import names
from plimsoll.alerts.base import NAMED, WHO, Alert, Level
from plimsoll.alerts.records import CONDITION

STALLED: Final = Alert(
    name="Stalled",
    summary=f"{WHO} waits for a person.",
    description=(
        "The condition Stalled is True: the operator has tried what it can, and nothing will change until somebody acts. Its message says what to do: "
        f"`kubectl describe llm {NAMED}`. What served before serves on; where nothing does, NotServing fires beside it."
    ),
    levels=(Level("warning", f'{CONDITION}{{type="{names.STALLED}"}} == 1', "5m"),),
)
