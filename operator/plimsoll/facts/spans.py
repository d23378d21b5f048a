"""Spans of time that several packages use."""

from typing import Final

DAY_S: Final = 86_400
