"""What pods of hundreds of resources tell the engine, over everything that can be told, up to its whole configuration.

There the platform is a CPU and models are folders with a config.json; what that cannot judge is named, and tried to be so.
"""

from collections import Counter

import pytest

from plimsoll.engines.command import TEMPLATE_FILE
from plimsoll.facts.engines import engine_facts
from tests.real_parser import tiny
from tests.real_parser.telling import VERSIONS, flags_of, told

CONFIGURED = 200


def spread(lines, *, least=4):
    """Some of them, so that each flag and kind is in as many as that where it is at all."""
    seen, rest = Counter[str](), []
    for line in lines:
        words, _, kinds = line
        traits = flags_of(words) | kinds
        if any(seen[trait] < least for trait in traits):
            seen.update(traits)
            yield line
        else:
            rest.append(line)
    yield from rest


@pytest.mark.parametrize("version", VERSIONS)
def test_the_engine_makes_a_whole_configuration_of_what_it_is_told(parsers, version, template, tmp_path):
    models = tiny.write(tmp_path)
    lines, _ = told(version)
    judged = [line for line in lines if not tiny.unjudged(line[0], version)]
    asked = [line for line, _ in zip(spread(judged), range(CONFIGURED), strict=False)]
    assert len(asked) == CONFIGURED
    everything = set().union(*(flags_of(words) | kinds for words, _, kinds in lines))
    reached = set().union(*(flags_of(words) | kinds for words, _, kinds in asked))
    assert everything - reached == set(tiny.NEVER_JUDGED)
    placed = [
        tiny.with_models(
            [template if word == TEMPLATE_FILE else word for word in words], models, mixture=mixture
        )
        for words, mixture, _ in asked
    ]
    verdicts = parsers(version).verdicts(placed, configured=True)
    assert [(line, v) for line, v in zip(placed, verdicts, strict=True) if v["stage"] is not None] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_named_as_not_to_be_judged_is_refused_for_that_reason_alone(parsers, version, tmp_path):
    own = str(tiny.write(tmp_path)["mixture"])
    named = [one for one in tiny.UNJUDGED if version in one.versions]
    lines = [[own, "--max-model-len", "2048", *one.example] for one in named]
    verdicts = parsers(version).verdicts(lines, configured=True)
    assert [
        (one.example, verdict)
        for one, verdict in zip(named, verdicts, strict=True)
        if verdict["stage"] != "config" or one.message not in verdict["message"]
    ] == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("flag", tiny.UNREAD)
def test_every_value_of_a_flag_makes_a_configuration_but_those_that_are_named(
    parsers, version, flag, tmp_path
):
    own = str(tiny.write(tmp_path)["mixture"])
    known = engine_facts("vllm", version).flags[flag]
    values = known.values or known.choices
    lines = [[own, "--max-model-len", "2048", flag, value] for value in values]
    verdicts = parsers(version).verdicts(lines, configured=True)
    refused = [value for value, verdict in zip(values, verdicts, strict=True) if verdict["stage"] is not None]
    assert sorted(refused) == sorted(tiny.UNREAD[flag][version])
