"""Kept for those who look for histograms beside what is done with them; they live among the facts."""

from plimsoll.facts.histograms import Histogram, total

__all__ = ["Histogram", "total"]
