"""Running one command line in this process, as a shell would: exit code, stdout and stderr."""

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from plimsoll.cli.main import run


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def plimsoll(*arguments: str, stdin: str | bytes = b"") -> Ran:
    out, err = io.StringIO(), io.StringIO()
    given = stdin.encode() if isinstance(stdin, str) else stdin
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        patch("sys.stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")),
    ):
        code = run(arguments)
    return Ran(code, out.getvalue(), err.getvalue())
