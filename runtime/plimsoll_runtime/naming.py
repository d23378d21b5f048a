"""Where an engine's words name a model or a tokenizer: after `serve`, and in the values of few flags. The same word elsewhere is something
else: what a model is served as looks just like where it comes from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

_FLAGS = ("--model", "--tokenizer", "--hf-config-path", "--generation-config", "--speculative-config.model")
_OBJECTS = ("--speculative-config", "-sc", "--lora-modules")
_KEYS = ("model", "tokenizer", "path")
"""Within those."""


def renamed(argv: Sequence[str], put: Callable[[str], str]) -> tuple[str, ...]:
    """The words, with what `put` makes of each name."""
    model = argv.index("serve") + 1 if "serve" in argv else 0
    words, flag = [], ""
    for place, word in enumerate(argv):
        if word.startswith("-"):
            flag, equals, value = word.partition("=")
            words.append(f"{flag}={_value(flag, value, put)}" if equals else word)
        elif model and place == model:
            words.append(put(word))
        else:
            words.append(_value(flag, word, put))
    return tuple(words)


def named(argv: Sequence[str]) -> list[str]:
    """All of them."""
    found: list[str] = []

    def note(name: str) -> str:
        found.append(name)
        return name

    renamed(argv, note)
    return found


def _value(flag: str, value: str, put: Callable[[str], str]) -> str:
    flag = flag.replace("_", "-")
    if flag in _FLAGS:
        return put(value)
    if flag not in _OBJECTS or not value.startswith("{"):
        return value
    try:
        told = json.loads(value)
    except (ValueError, RecursionError):  # the engine says so
        return value
    new = {key: put(one) if key in _KEYS and isinstance(one, str) else one for key, one in told.items()}
    return value if new == told else json.dumps(new, separators=(",", ":"), sort_keys=True)
