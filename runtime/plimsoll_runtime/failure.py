"""Why an engine does not run, as data: a word for programs, a sentence and a remedy for people, and lines of the log as evidence.

The kubelet keeps 4 KiB of a container's termination message, so the text is cut to that size, the evidence first.
"""

from __future__ import annotations

import errno
import json
import re
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

MOST_BYTES = 4096
MOST_EVIDENCE = 5
MOST_LINE = 300
LEAST_SECRET = 6
"""Characters that a secret has at least. If shorter values were removed from texts, too much of these would be lost."""
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
"""Errors of the system where a folder could be written if there were room."""
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|API_KEY|ACCESS_KEY|CREDENTIAL|REGISTRY_AUTH")
_USERINFO = (
    # A name and a password, up to the first @ and up to the last: before the first where there are more addresses, and before the last where
    # the password holds one. A proxy may have no scheme. An image's digest follows an @ as well.
    re.compile(r"(?:://|^(?!\w+://))(?=([^/:\s]*:([^@\s]+)@(?!sha\d+:)))(?=([^/:\s]*:(\S+)@(?!sha\d+:)))"),
    # A name alone may be a token.
    re.compile(r"(?i)(?:https?|socks\w*)://([^/:@\s]+):?@"),
)
_DIVIDERS = re.compile(r"[/?#@]")
"""Where programs that are given an address cut a password that is not escaped, before they quote a part of it."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class Failure(NamedTuple):
    word: str
    """CamelCase; a condition's reason."""
    message: str
    """One sentence, without a full stop."""
    remedy: str
    """What to change: a field of the resource, or a command."""
    evidence: tuple[str, ...] = ()
    """Lines of the log."""

    def told(self) -> dict[str, object]:
        return {
            "word": self.word,
            "message": self.message,
            "remedy": self.remedy,
            "evidence": list(self.evidence),
        }


class Warned(NamedTuple):
    """Something that is not as the plan counts on but lets the engine run, so it is no reason of a condition."""

    word: str
    message: str
    remedy: str

    def told(self) -> dict[str, str]:
        return self._asdict()


def plain(line: str) -> str:
    """A line of a log for a status: without colours and control characters, and of bounded length."""
    clean = _CONTROL.sub("", line).strip()
    return clean if len(clean) <= MOST_LINE else clean[: MOST_LINE - 3] + "..."


def unforeseen(error: Exception, what: str) -> Failure:
    """The failure for a bug of this program. It has the error's type and place alone, as its text may quote a secret."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    lines = tuple(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
    message = f"{what} ended in an error that nobody foresaw ({type(error).__name__})"
    return Failure(
        "Download", message, "check spec.model.source, and report this error with its lines", lines
    )


def termination_message(failure: Failure) -> str:
    """JSON of at most 4 KiB: the evidence shrinks first, the sentence last."""
    evidence = [plain(line) for line in failure.evidence[:MOST_EVIDENCE]]
    while True:
        message, remedy = plain_text(failure.message), plain_text(failure.remedy)
        text = json.dumps(failure._replace(message=message, remedy=remedy, evidence=tuple(evidence)).told())
        if len(text.encode()) <= MOST_BYTES:
            return text
        evidence.pop()  # a message and a remedy alone, cut as they are, always fit


def plain_text(text: str) -> str:
    return _CONTROL.sub("", text)[:600]


def scrubbed(failure: Failure, environment: Mapping[str, str]) -> Failure:
    """The failure without values of the environment that are secret, as an error may quote an address or an argument with one in it."""
    kept = [value for name, value in environment.items() if _SECRET.search(name)]
    for value in environment.values():
        for found in (match.groups() for form in _USERINFO for match in form.finditer(value)):
            kept += [*found, *(part for secret in found for part in _DIVIDERS.split(secret))]
    lines = [line.strip() for value in kept for line in value.splitlines()]
    long = {secret for secret in (*kept, *lines) if len(secret) >= LEAST_SECRET}
    secrets = sorted(long, key=lambda secret: (-len(secret), secret))

    def without(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, "***")
        return text

    return Failure(
        failure.word,
        without(failure.message),
        without(failure.remedy),
        tuple(without(line) for line in failure.evidence),
    )
