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
import io
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "operator" / "plimsoll" / "cli"))
import engine_script


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


def main():
    folder = str(Path(sys.argv[1]).resolve())
    engine_script.prepare(folder)
    model = sys.argv[sys.argv.index("--config") + 1] if "--config" in sys.argv else None
    if model is not None:
        prepare_children(folder)
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what vLLM prints by itself goes elsewhere
    if "--environment" in sys.argv:
        json.dump(engine_script.variables(), answer)
    else:
        top, serve, command = engine_script.parsers()
        if "--flags" in sys.argv:
            json.dump(engine_script.flags_of(serve), answer)
        else:
            json.dump([judged(words, top, serve, command, model) for words in json.load(sys.stdin)], answer)
    answer.flush()


if __name__ == "__main__":
    main()
