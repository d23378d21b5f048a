"""Spans of time that more than one room counts in."""

from typing import Final

DAY_S: Final = 86_400
