"""What the operator's servers have in common."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from plimsoll.handlers.ending import ANSWERS_SECONDS

IDLE_SECONDS: Final = 120.0
"""After which a connection is closed on which no request came, or only the beginning of one, so that nobody can use up all that there may be.
The API server closes its own after 90 s, and so never asks on one that is being closed."""


def runner_of(app: web.Application) -> web.AppRunner:
    return web.AppRunner(
        app, access_log=None, shutdown_timeout=ANSWERS_SECONDS, keepalive_timeout=IDLE_SECONDS
    )
