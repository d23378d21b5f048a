"""How an engine is told what a plan decided. A new engine is one module here and one line below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plimsoll.engines import vllm
from plimsoll.engines.command import Engine

ENGINES: Final[Mapping[str, Engine]] = {"vllm": vllm.command}
