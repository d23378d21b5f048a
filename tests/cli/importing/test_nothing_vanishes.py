"""Every flag of every listed version ends in exactly one outcome, whatever its value."""

import pytest
import yaml

from plimsoll.api.loading import load_deployments
from plimsoll.cli.importing import Outcome, import_text
from plimsoll.facts.engine_flags import FlagKind
from plimsoll.facts.engines import engine_facts, engine_profile, listed_versions

VALUES = {
    FlagKind.INT: "2",
    FlagKind.FLOAT: "0.5",
    FlagKind.SIZE: "4096",
    FlagKind.SIZE_OR_AUTO: "4096",
    FlagKind.STR: "word",
    FlagKind.JSON: '{"a":1}',
    FlagKind.JSON_OR_WORD: '{"a":1}',
}
OWNED = frozenset(engine_profile("vllm").owned)


def words_of(flag):
    if flag.kind is FlagKind.BOOL:
        return (flag.name,)
    known = [*flag.choices, *flag.values]
    return (flag.name, known[0] if known else VALUES[flag.kind])


def quoted(words):
    return " ".join(f"'{word}'" for word in words)


ALL = [
    pytest.param(version, flag, id=f"{version}{flag.name}")
    for version in listed_versions("vllm")
    for flag in engine_facts("vllm", version).flags.values()
    if flag.name != "--model"
]


@pytest.mark.parametrize(("version", "flag"), ALL)
def test_a_flag_ends_in_exactly_one_outcome(version, flag):
    words = words_of(flag)
    imported = import_text(f"vllm serve org/model {quoted(words)}", engine_version=version)
    # Keys inside a flag's JSON that have no field are named one by one, behind a colon.
    told = [fate for fate in imported.fates if fate.what.startswith(flag.name)]
    whole = [fate for fate in told if not fate.what.startswith(f"{flag.name}:")]
    assert told
    assert len(whole) <= 1, whole
    assert load_deployments(as_text(imported)).problems == ()


@pytest.mark.parametrize(
    ("version", "opposite"),
    [
        pytest.param(version, spelling, id=f"{version}{spelling}")
        for version in listed_versions("vllm")
        for flag in engine_facts("vllm", version).flags.values()
        for spelling in flag.also
        if flag.kind is FlagKind.BOOL
    ],
)
def test_a_switch_by_another_spelling_ends_in_exactly_one_outcome(version, opposite):
    imported = import_text(f"vllm serve org/model {opposite}", engine_version=version)
    fates = [fate for fate in imported.fates if fate.what.startswith(opposite)]
    assert len(fates) == 1, fates


@pytest.mark.parametrize(("version", "flag"), ALL)
def test_no_extra_argument_is_a_flag_that_plimsoll_writes(version, flag):
    imported = import_text(f"vllm serve org/model {quoted(words_of(flag))}", engine_version=version)
    for document in imported.documents:
        extra = document["spec"].get("engine", {}).get("extraArgs", [])
        assert not OWNED & {word.partition("=")[0].partition(".")[0] for word in extra}


@pytest.mark.parametrize("stale", engine_profile("vllm").stale_flags, ids=lambda stale: stale.flag)
def test_a_stale_flag_is_translated_or_named(stale):
    value = {"--rope-scaling": '{"rope_type":"yarn","factor":2}'}.get(stale.flag, "2")
    words = (stale.flag, *([value] * stale.words))
    imported = import_text(f"vllm serve org/model {quoted(words)}")
    fates = [fate for fate in imported.fates if stale.flag in fate.what]
    assert len(fates) == 1, fates
    assert fates[0].outcome in (Outcome.TRANSLATED, Outcome.LOST)


@pytest.mark.parametrize("name", sorted(engine_facts().environment))
def test_a_variable_of_the_engine_ends_in_exactly_one_outcome(name):
    imported = import_text(f"{name}=1 vllm serve org/model")
    fates = [
        fate
        for fate in imported.fates
        if fate.what.startswith(f"{name}=") or fate.what.startswith(f"{name} ")
    ]
    assert len(fates) == 1, fates


@pytest.mark.parametrize("name", sorted(engine_profile("vllm").stale_environment))
def test_a_stale_variable_is_translated_or_named(name):
    imported = import_text(f"{name}=1 vllm serve org/model")
    (fate,) = (fate for fate in imported.fates if fate.what.startswith(name))
    assert fate.outcome in (Outcome.TRANSLATED, Outcome.LOST)


def as_text(imported):
    return yaml.safe_dump_all(imported.documents)
