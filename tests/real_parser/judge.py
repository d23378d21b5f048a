# ruff: noqa: PLC0415, TID251 - it runs in an environment of its own, which it must prepare before it imports
# mypy: ignore-errors
"""Ask vLLM's own argument parser about command lines; runs inside the environment that setup.py makes.

Two questions, both answered as JSON on standard output:

    judge.py FOLDER          standard input: a list of argv lists (the words behind `vllm serve`);
                             answer: for each the stage that refused it (parse, validate, build, config) or null, its message,
                             and the arguments that differ from the defaults
    judge.py FOLDER --config MODEL
                             the same and one stage more (config): the engine's whole configuration is made, with the
                             model in folder MODEL (a config.json is enough) in the place of the one that was named
    judge.py FOLDER --flags  the parser's flags, in the form of the bundled lists
    judge.py FOLDER --environment
                             the variables that this version reads

FOLDER holds the unpacked `vllm` package. Nothing here needs a GPU: the platform is told to be the CPU, which vLLM takes
from its version's name, so the version is given that name before anything is imported.
"""

import contextlib
import importlib.metadata
import io
import json
import os
import sys
import tempfile
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


def prepare(folder):
    os.environ |= {
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_PLUGINS": "",
        "VLLM_NO_USAGE_STATS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
    sys.path.insert(0, folder)
    genuine = importlib.metadata.version
    importlib.metadata.version = lambda name: genuine(name) + ("+cpu" if name.lower() == "vllm" else "")


def prepare_children(folder):
    """To make a configuration vLLM asks a Python of its own about the model's class; it must see the same version."""
    hook = tempfile.mkdtemp()
    Path(hook, "sitecustomize.py").write_text(
        "import importlib.metadata as metadata\n"
        "genuine = metadata.version\n"
        "metadata.version = lambda name: genuine(name) + ('+cpu' if name.lower() == 'vllm' else '')\n"
    )
    os.environ["PYTHONPATH"] = os.pathsep.join((hook, folder))
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def parsers():
    from vllm.entrypoints.cli.serve import cmd_init
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    top = FlexibleArgumentParser(prog="vllm")
    command = cmd_init()[0]
    return top, command.subparser_init(top.add_subparsers(dest="subparser")), command


def judged(words, top, serve, command, model=None):
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext

    defaults = {action.dest: action.default for action in serve._actions}
    stage, complaint = "parse", io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), contextlib.redirect_stdout(io.StringIO()):
            told = top.parse_args(["serve", *words])
            stage = "validate"
            command.validate(told)
            stage = "build"
            told.model = model or told.model
            engine = AsyncEngineArgs.from_cli_args(told)
            if model is not None:
                stage = "config"
                engine.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)
    except SystemExit:
        return {"stage": stage, "message": complaint.getvalue().strip().rpartition("error: ")[2], "set": []}
    except Exception as error:  # noqa: BLE001 - whatever refuses a command line is an answer
        return {"stage": stage, "message": f"{type(error).__name__}: {error}"[:400], "set": []}
    changed = [name for name, value in vars(told).items() if name in defaults and value != defaults[name]]
    return {"stage": None, "message": "", "set": sorted(changed)}


def in_order(choices):
    """Values as text, in the parser's order, which a set does not have."""
    words = [choice for choice in choices if choice is not None]
    return sorted(words) if isinstance(choices, set | frozenset) else words


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
    if value is None or isinstance(value, bool | int | float | str):
        return None if value == "==SUPPRESS==" else value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return None


def main():
    folder = str(Path(sys.argv[1]).resolve())
    prepare(folder)
    model = sys.argv[sys.argv.index("--config") + 1] if "--config" in sys.argv else None
    if model is not None:
        prepare_children(folder)
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what vLLM prints by itself goes elsewhere
    if "--environment" in sys.argv:
        from vllm import envs

        json.dump(sorted(name for name in envs.environment_variables if name.startswith("VLLM_")), answer)
    else:
        top, serve, command = parsers()
        if "--flags" in sys.argv:
            json.dump(flags_of(serve), answer)
        else:
            json.dump([judged(words, top, serve, command, model) for words in json.load(sys.stdin)], answer)
    answer.flush()


if __name__ == "__main__":
    main()
