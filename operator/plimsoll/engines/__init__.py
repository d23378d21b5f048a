"""How an engine is told what a plan decided. A new engine needs one module here and one line in `ENGINES`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plimsoll.engines import vllm
from plimsoll.engines.command import Engine

ENGINES: Final[Mapping[str, Engine]] = {"vllm": vllm.command}
