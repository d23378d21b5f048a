"""Which release of an engine a version text means, however it was written down.

Images, bug reports and logs name versions as "v0.18.0+vendor.7", "0.13.1.dev8+g2841a84ac", "0.11 nightly (2025-09-29)" or by
a month alone. A text that names a release means that release; one with only a date means the release that was current then. Of other
texts the version is unknown, and callers use the facts of the newest one and say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

_RELEASE = re.compile(
    r"(?<![\d.])v?(\d+)\.(\d+)(?:\.(\d+|x))?(?:[.-]?(dev|a|b|rc|post)(\d*))?", re.IGNORECASE
)
_DATE = re.compile(r"(?<!\d)(20[2-9]\d)(?:-(\d{2})(?:/\d{2})?(?:-(\d{2}))?)?(?!\d|\.)")
_UNRELEASED = re.compile(r"\b(nightly|dev)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A release. `released` is False for builds on the way to it, which sort just below it."""

    major: int
    minor: int
    patch: int = 0
    released: bool = True

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}" + ("" if self.released else ".dev")


def release(text: str) -> Version:
    """The release of a plain version such as 0.33.0."""
    major, minor, patch = (int(part) for part in text.split("."))
    return Version(major, minor, patch)


def parse_version(text: str | None, releases: Mapping[Version, date] | None = None) -> Version | None:
    """The release that a text means, or None where it says neither a release nor a date that is in `releases`."""
    if not text:
        return None
    releases = releases or {}
    day = _day_in(text)
    named = [
        found for match in _RELEASE.finditer(_DATE.sub(" ", text)) if (found := _named(match)) is not None
    ]
    if not named:
        return _current_on(day, releases)
    lowest, highest = named[0], named[-1]
    is_open = lowest != highest or re.search(r"\d\.x\b", text) is not None
    if day is not None and is_open:
        current = _current_on(day, releases)
        if (
            current is not None
            and lowest <= current
            and (current.major, current.minor) <= (highest.major, highest.minor)
        ):
            return current
    if _UNRELEASED.search(text) and lowest.patch == 0:
        return Version(lowest.major, lowest.minor, 0, released=False)
    return lowest


def _named(match: re.Match[str]) -> Version | None:
    major, minor, patch = int(match[1]), int(match[2]), match[3]
    kind = (match[4] or "").lower()
    if kind == "dev" and (major, minor) == (0, 1) and len(match[5]) > 3:
        return None  # a build without tags is numbered by commits since the first one, which says no release
    fixed = int(patch) if patch and patch.isdigit() else 0
    # A release candidate has all of its release, while a dev build still lacks what is added until the release.
    return Version(major, minor, fixed, released=kind != "dev")


def _day_in(text: str) -> date | None:
    match = _DATE.search(text)
    if match is None:
        return None
    month = int(match[2] or 7)
    day = int(match[3] or (15 if match[2] else 1))
    try:
        return date(int(match[1]), month, day)
    except ValueError:
        return None


def _current_on(day: date | None, releases: Mapping[Version, date]) -> Version | None:
    if day is None:
        return None
    return max((version for version, published in releases.items() if published <= day), default=None)
