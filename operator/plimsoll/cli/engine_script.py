# ruff: noqa: PLC0415, SLF001, TID251 - it runs in an engine's own Python, which it must prepare before it imports
# mypy: ignore-errors
"""What vLLM's own parser says of itself: flags, defaults, choices, variables, metrics. A program for the Python of an engine's image.

It stands alone (any Python from 3.9, nothing of ours), since it is sent there as text. It answers as JSON on standard output:

    python3 - [FOLDER] < engine_script.py

FOLDER holds an unpacked `vllm` package, where none is installed. Nothing here needs a GPU: without one vLLM takes the platform from
its version's name, so the version is given that name before anything is imported.
"""

import importlib.metadata
import json
import os
import re
import sys
from enum import Enum
from pathlib import Path

KINDS = {
    "parse_dataclass": "json",
    "_parse_type": "json",
    "parse_type": "json",
    "loads": "json",
    "union_dict_and_str": "json-or-word",
    "human_readable_int": "size",
    "human_readable_int_or_auto": "size-or-auto",
}
PLAIN = ("int", "float", "str")
METRIC = re.compile(r"[\"'](vllm:[a-z0-9_]+)[\"']")


def prepare(folder=None):
    """The version as it is."""
    os.environ.update(
        VLLM_TARGET_DEVICE="cpu",
        VLLM_PLUGINS="",
        VLLM_NO_USAGE_STATS="1",
        CUDA_VISIBLE_DEVICES="",
        VLLM_LOGGING_LEVEL="ERROR",
    )
    if folder is not None:
        sys.path.insert(0, folder)
    genuine = importlib.metadata.version

    def version(name):
        found = genuine(name)
        return found.partition("+")[0] + "+cpu" if name.lower() == "vllm" else found

    importlib.metadata.version = version
    return genuine("vllm").partition("+")[0]


def parsers():
    from vllm.entrypoints.cli.serve import cmd_init

    try:
        from vllm.utils.argparse_utils import FlexibleArgumentParser
    except ImportError:
        from vllm.utils import FlexibleArgumentParser
    top = FlexibleArgumentParser(prog="vllm")
    command = cmd_init()[0]
    return top, command.subparser_init(top.add_subparsers(dest="subparser")), command


def in_order(choices):
    """Values as text, in the parser's order, which a set does not have."""
    words = [choice for choice in choices if choice is not None]
    return sorted(words) if isinstance(choices, (set, frozenset)) else words


def checked_later():
    """Values that the parser lets through and that the engine knows all the same."""
    from typing import get_args

    from vllm.config.cache import CacheDType
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
    from vllm.model_executor.model_loader import _LOAD_FORMAT_TO_MODEL_LOADER
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    return {
        "attention_backend": sorted(AttentionBackendEnum.__members__),
        "kv_cache_dtype": sorted(get_args(CacheDType)),
        "load_format": sorted(_LOAD_FORMAT_TO_MODEL_LOADER),
        "quantization": sorted(QUANTIZATION_METHODS),
        "reasoning_parser": sorted(ReasoningParserManager.list_registered()),
        "tool_call_parser": sorted(ToolParserManager.list_registered()),
    }


def flags_of(serve):
    known = checked_later()
    spelled = {}
    for spelling, action in serve._option_string_actions.items():
        spelled.setdefault(id(action), []).append(spelling)
    found = {}
    for action in serve._actions:
        longs = [
            name for name in action.option_strings if name.startswith("--") and not name.startswith("--no-")
        ]
        if not action.option_strings or action.dest == "help":
            continue
        name = (longs or action.option_strings)[0]
        entry = {"type": kind_of(action)}
        default = plain(action.default)
        if default is not None:
            entry["default"] = default
        if action.nargs not in (None, 0):
            entry["nargs"] = action.nargs
        also = sorted(set(spelled[id(action)]) - {name})
        if also:
            entry["also"] = also
        if action.choices:
            entry["choices"] = in_order(action.choices)
        values = known.get(action.dest, [])
        if values and values != entry.get("choices"):
            entry["values"] = values
        if "deprecated" in (action.help or "").lower():
            entry["deprecated"] = True
        found[name] = entry
    return dict(sorted(found.items()))


def kind_of(action):
    if action.nargs == 0 or "Boolean" in type(action).__name__ or "EnableDisable" in type(action).__name__:
        return "bool"
    convert, optional = action.type, ""
    if getattr(convert, "__name__", "") == "_optional_type":
        optional = "?"
        convert = next(cell.cell_contents for cell in convert.__closure__ if callable(cell.cell_contents))
    name = getattr(convert, "__name__", "str")
    return (KINDS.get(name) or (name if name in PLAIN else "str")) + optional


def plain(value):
    """A default as JSON; None for objects, which are built from the other flags."""
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, int) else value.name
    if value is None or isinstance(value, (bool, int, float, str)):
        return None if value == "==SUPPRESS==" else value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return None


def variables():
    from vllm import envs

    return sorted(name for name in envs.environment_variables if name.startswith("VLLM_"))


def metrics():
    """Names that stand in its sources; counters are exported with `_total` behind."""
    import vllm

    found = set()
    for file in sorted((Path(vllm.__file__).parent / "v1").rglob("*.py")):
        found.update(METRIC.findall(file.read_text(encoding="utf-8", errors="replace")))
    return sorted(found)


def main():
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what vLLM prints by itself goes elsewhere
    version = prepare(str(Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else None)
    _, serve, _ = parsers()
    found = {
        "engine": "vllm",
        "version": version,
        "flags": flags_of(serve),
        "environment": variables(),
        "metrics": metrics(),
    }
    json.dump(found, answer)
    answer.flush()


if __name__ == "__main__":
    main()
