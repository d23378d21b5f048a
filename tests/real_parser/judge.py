# ruff: noqa: PLC0415, TID251 - it runs in an environment of its own, which it must prepare before it imports
# mypy: ignore-errors
"""Ask vLLM's own argument parser about command lines; runs inside the environment that setup.py makes.

    judge.py FOLDER

FOLDER holds the unpacked `vllm` package. To start takes ten seconds, so it stays and answers: a question is a line of JSON on standard
input, its answer a line of JSON on standard output.

    {"ask": "lines", "lines": [...]}   of argv lists (the words behind `vllm serve`): for each the stage that refused it (parse, validate,
                                       build) or null, its message, and the arguments that differ from the defaults
    {"ask": "configurations", ...}     the same and one stage more (config): the engine's whole configuration is made, so a model must be
                                       there, in a folder (a config.json is enough)
    {"ask": "flags"}                   the parser's flags, in the form of the bundled lists
    {"ask": "environment"}             the variables that this version reads

Nothing here needs a GPU: the platform is told to be the CPU, which vLLM takes from its version's name, so the version is given that
name before anything is imported.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "operator" / "plimsoll" / "cli"))
import engine_script


def prepare_children(folder, scratch):
    """To make a configuration vLLM asks a Python of its own about the model's class; it must see the same version."""
    Path(scratch, "sitecustomize.py").write_text(
        "import importlib.metadata as metadata\n"
        "genuine = metadata.version\n"
        "metadata.version = lambda name: genuine(name).partition('+')[0] + ('+cpu' if name.lower() == 'vllm' else '')\n"
    )
    os.environ["PYTHONPATH"] = os.pathsep.join((scratch, folder))
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_CACHE_ROOT": scratch}


def judged(words, top, serve, command, *, configured):
    from huggingface_hub import constants
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext

    constants.HF_HUB_OFFLINE = configured  # without it names of models would be looked up in the cache
    defaults = {action.dest: action.default for action in serve._actions}
    stage, complaint = "parse", io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), contextlib.redirect_stdout(io.StringIO()):
            told = top.parse_args(["serve", *words])
            stage = "validate"
            command.validate(told)
            stage = "build"
            if configured:
                told.model = told.model_tag
            engine = AsyncEngineArgs.from_cli_args(told)
            if configured:
                stage = "config"
                engine.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)
    except SystemExit:
        return {"stage": stage, "message": complaint.getvalue().strip().rpartition("error: ")[2], "set": []}
    except Exception as error:  # noqa: BLE001 - whatever refuses a command line is an answer
        return {"stage": stage, "message": f"{type(error).__name__}: {error}"[:400], "set": []}
    changed = [name for name, value in vars(told).items() if name in defaults and value != defaults[name]]
    return {"stage": None, "message": "", "set": sorted(changed)}


def answered(question, top, serve, command):
    match question["ask"]:
        case "flags":
            return engine_script.flags_of(serve)
        case "environment":
            return engine_script.variables()
        case asked:
            configured = asked == "configurations"
            return [judged(words, top, serve, command, configured=configured) for words in question["lines"]]


def main():
    folder = str(Path(sys.argv[1]).resolve())
    engine_script.prepare(folder)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what vLLM prints by itself goes elsewhere
    with tempfile.TemporaryDirectory() as scratch:
        prepare_children(folder, scratch)
        top, serve, command = engine_script.parsers()
        for question in sys.stdin:
            answers.write(json.dumps(answered(json.loads(question), top, serve, command)) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
