"""What is believed of vLLM's command line, against vLLM's own parsers of the listed versions.

`make test-parser` makes their environment and then runs these tests.
"""

import shlex
from pathlib import Path

import pytest

from plimsoll.api.loading import load_deployments
from plimsoll.api.presets import built_in_presets
from plimsoll.api.v1alpha1 import LLMDeployment
from plimsoll.cli.importing import argv, import_text
from plimsoll.cli.importing import command as reading
from plimsoll.engines.command import TEMPLATE_FILE
from plimsoll.engines.vllm import command
from plimsoll.facts.engine_data import flag_table
from plimsoll.facts.engine_files import describe, read_told
from plimsoll.facts.engine_flags import FlagKind
from plimsoll.facts.engines import engine_facts, engine_profile, listed_versions
from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.inventory import Inventory, Pool
from plimsoll.facts.models import lookup
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.planning.settings import LoraSlots
from tests.engines.sets import chosen
from tests.real_parser import asking, regenerate, setup

HERE = Path(__file__).parent
SAMPLES = HERE.parent / "samples" / "import"
VERSIONS = listed_versions("vllm")


def test_a_parser_is_asked_of_every_version_whose_flags_are_bundled():
    assert set(setup.VERSIONS) == set(VERSIONS)


@pytest.fixture(scope="session")
def judge(parsers):
    return lambda version, lines: parsers(version).verdicts(lines)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_bundled_lists_are_the_parsers_own(place, version):
    # One that nothing was asked yet: what it configures changes its defaults.
    with asking.Parser(place, version) as parser:
        expected = regenerate.expected(parser, version)
    for name, text in expected.items():
        assert (regenerate.LISTS / name).read_text("utf-8") == text, name


@pytest.mark.parametrize("version", VERSIONS)
def test_what_an_image_says_of_itself_is_what_is_bundled_of_its_version(place, version):
    file, _ = describe(read_told(asking.told(place, version)))
    bundled = engine_facts("vllm", version)
    assert dict(flag_table(file.flags)) == dict(bundled.flags)
    assert set(file.environment) == bundled.environment
    assert file.metrics == {}, "all metrics that are used are there by these names"
    assert float(file.utilization_default or 0) == bundled.utilization_default


def value_of(flag):
    known = [*flag.choices, *flag.values]
    if flag.name == "--lora-modules":
        return "name=org/adapter"
    if known:
        return known[0]
    plain = {FlagKind.INT: "2", FlagKind.FLOAT: "0.5", FlagKind.STR: "word"}
    return plain.get(flag.kind, "4096" if "size" in flag.kind else "{}")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_spelling_that_is_found_is_one_that_the_parser_takes(judge, version):
    flags = engine_facts("vllm", version).flags
    lines, names = [], []
    for flag in flags.values():
        if flag.name in ("--config", "--model"):
            continue  # one wants a file that exists, the other must stand alone
        words = [] if flag.kind is FlagKind.BOOL else [value_of(flag)]
        for spelling in (flag.name, *flag.also, f"--{flag.dest}"):
            match = flags.find(spelling)
            assert match is not None
            assert match.flag == flag
            lines.append(["org/model", spelling, *words])
            names.append((flag.dest, spelling))
    refused = [
        (spelling, verdict["message"])
        for (_, spelling), verdict in zip(names, judge(version, lines), strict=True)
        if verdict["stage"] == "parse"
    ]
    assert refused == []


@pytest.mark.parametrize("version", VERSIONS)
def test_stale_flags_are_refused_or_mean_something_else(judge, version):
    facts = engine_facts("vllm", version)
    stale = [item for item in engine_profile("vllm").stale_flags if facts.flags.find(item.flag) is None]
    lines = [["org/model", item.flag, *(["2"] * item.words)] for item in stale]
    assert [
        item.flag
        for item, verdict in zip(stale, judge(version, lines), strict=True)
        if verdict["stage"] is None
    ] == []


def engine_lines():
    """The words behind `vllm serve` that the samples hold, as `import` reads them."""
    found = []
    genuine = argv.parse_argv

    def watched(given, flags, stale, foreign=None, version=""):
        words = list(given)
        line = genuine(words, flags, stale, foreign, version)
        found.append((words, line, bool(foreign)))
        return line

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "parse_argv", watched)
        for sample in sorted(SAMPLES.iterdir()):
            import_text(sample.read_text("utf-8"), engine_version=VERSIONS[-1])
    return found


def test_the_parser_takes_what_import_reads_and_refuses_what_it_calls_stale_or_unknown(judge):
    lines = engine_lines()
    asked = [
        words if words[:1] and not words[0].startswith("-") else ["--model", "org/m", *words]
        for words, _, _ in lines
    ]
    for (words, line, foreign), verdict in zip(lines, judge(VERSIONS[-1], asked), strict=True):
        known = not line.stale and not line.unread
        if not foreign:
            assert (verdict["stage"] != "parse") == known, (words, verdict)


def extra_arguments(version):
    """Every word that `import` hands on as an extra argument: of each flag, and of the samples."""
    lines = []
    for flag in engine_facts("vllm", version).flags.values():
        words = "" if flag.kind is FlagKind.BOOL else f" '{value_of(flag)}'"
        lines.append(f"vllm serve org/model {flag.name}{words}")
    texts = [*lines, *(path.read_text("utf-8") for path in sorted(SAMPLES.iterdir()) if path.is_file())]
    for text in texts:
        for document in import_text(text, engine_version=version).documents:
            extra = document["spec"].get("engine", {}).get("extraArgs", [])
            if extra:
                yield ["org/model", *extra]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_parser_takes_every_extra_argument(judge, version):
    lines = list(extra_arguments(version))
    verdicts = judge(version, lines)
    assert [(line, v) for line, v in zip(lines, verdicts, strict=True) if v["stage"] == "parse"] == []


def preset_lines(version):
    """What the engine is told for each preset, planned on a fleet of two kinds of GPU."""
    facts = engine_facts("vllm", version)
    pools = tuple(
        Pool(
            key=name,
            gpu=gpu_named(name),
            memory_bytes=gpu_named(name).memory_bytes,
            resource="nvidia.com/gpu",
            devices_per_node=8,
            free={8: 4},
        )
        for name in ("H100-SXM-80GB", "L40S")
    )
    for preset in built_in_presets():
        for source in ("Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B"):
            deployment = LLMDeployment.model_validate(
                {
                    "metadata": {"name": preset.name},
                    "spec": {"model": {"source": source}, "workload": {"preset": preset.name}},
                }
            )
            made = plan(deployment, Inventory(pools=pools), PlanFacts(model=lookup(source), engine=facts))
            for one in made.sets:
                yield [*command(deployment.spec, one, facts).argv[2:]]


def resource_lines(version):
    """What the engine is told for every valid sample of the resource, its own extra arguments aside."""
    facts = engine_facts("vllm", version)
    slots = LoraSlots(max_loras=1, max_rank=16, max_cpu_loras=1)
    for sample in sorted((HERE.parent / "api" / "samples" / "valid").glob("*.yaml")):
        for deployment in load_deployments(sample.read_bytes()).or_raise():
            engine = deployment.spec.engine.model_copy(update={"extra_args": ()})
            spec = deployment.spec.model_copy(update={"engine": engine})
            yield [*command(spec, chosen(lora=slots), facts).argv[2:]]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_parser_takes_what_plans_of_presets_and_sample_resources_tell_the_engine(
    judge, version, tmp_path
):
    template = tmp_path / "template.jinja"
    template.write_text("{{ messages }}", "utf-8")  # the parser looks whether a pod's file is there
    presets = list(preset_lines(version))
    assert len(presets) >= len(built_in_presets())
    lines = [
        [str(template) if word == TEMPLATE_FILE else word for word in line]
        for line in (*presets, *resource_lines(version))
    ]
    verdicts = judge(version, lines)
    assert [(line, v) for line, v in zip(lines, verdicts, strict=True) if v["stage"] is not None] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_plan_tells_the_engine_is_read_back_without_a_word_unknown(version):
    for line in (*preset_lines(version), *resource_lines(version)):
        imported = import_text(f"vllm serve {shlex.join(line)}", engine_version=version)
        assert [fate.what for fate in imported.lost if "has no" in fate.why or "refuses it" in fate.why] == []
