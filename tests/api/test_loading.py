"""Reading files: what is right comes out, what is wrong is named with its field, its value and what would be right."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plimsoll.api.loading import MAX_BYTES, load_config, load_deployments, parse_documents
from plimsoll.api.plainyaml import MAX_DEPTH
from plimsoll.api.problems import SpecError, show
from plimsoll.api.v1alpha1 import LLMDeployment

HEAD = "apiVersion: plimsoll.dev/v1alpha1\nkind: LLMDeployment\nmetadata: {name: chat}\n"
MODEL = "  model: {source: hf://Qwen/Qwen3-8B}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: hf}\n"


def one(spec: str) -> list[str]:
    return [str(problem) for problem in load_deployments(f"{HEAD}spec:\n{MODEL}{spec}").problems]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("  replicas: '3'", "spec.replicas: must be a whole number, written without quotes or a point (found '3')"),
        ("  replicas: 1.5", "spec.replicas: must be a whole number, written without quotes or a point (found 1.5)"),
        ("  replicas: true", "spec.replicas: must be a whole number, written without quotes or a point (found true)"),
        ("  adapters: {runtimeLoading: true, maxRank: true}", "spec.adapters.maxRank: must be a whole number, written without quotes or a point (found true)"),
        ("  replicas: -1", "spec.replicas: must be at least 0 (found -1)"),
        ("  paused: 'yes'", "spec.paused: must be true or false, written without quotes (found 'yes')"),
        ("  slo: {ttftP99Ms: 0}", "spec.slo.ttftP99Ms: must be at least 1 (found 0)"),
        ("  memory: {utilizationPercent: 120}", "spec.memory.utilizationPercent: must be at most 100 (found 120)"),
        (
            "  memory: {headroom: 1 Gi}",
            "spec.memory.headroom: not a quantity; write a number and a unit, as 24Gi, 500M, 4 or 1500m (found '1 Gi')",
        ),
        (
            "  workload: {concurency: 4}",
            "spec.workload.concurency: is no known field; did you mean concurrency?",
        ),
        (
            "  contextTokens: 4096",
            "spec.contextTokens: is no field of this group; did you mean spec.workload.contextTokens?",
        ),
        ("  topology: {gpus: [H100]}", "spec.topology.gpus: is no known field; did you mean gpuProducts?"),
        ("  slo: {zzz: 1}", "spec.slo.zzz: is no known field; known here: availabilityPercent, itlP99Ms, ttftP99Ms"),
        ("  slo: [1]", "spec.slo: must be a group of fields: ttftP99Ms, itlP99Ms, availabilityPercent (found [1])"),
        ("  podPatches: {op: add}", "spec.podPatches: must be a list (found {'op': 'add'})"),
        ("  podLabels: {team: 3}", "spec.podLabels.team: must be text; put it in quotes (found 3)"),
        ("  tuning: {mode: off}", "spec.tuning.mode: must be one of 'auto', 'dryRun' or 'off'; YAML reads off as a boolean: write it in quotes (found false)"),
        ("  speculative: {method: magic}", "spec.speculative.method: must be one of 'ngram', 'draft', 'eagle', 'eagle3' or 'mtp' (found 'magic')"),
        ("  engine: {extraArgs: ['']}", "spec.engine.extraArgs[0]: must have at least 1 characters (found '')"),
        (
            "  engine: {env: [{name: A, value: b}, {name: A, value: c}]}",
            "spec.engine.env: 'A' is listed twice; each may stand there once (found [{'name': 'A', 'value': 'b'}, {'name': 'A', 'value': 'c'}])",
        ),
        ("  topology: {gpuProducts: [H100, H100]}", "spec.topology.gpuProducts: 'H100' is listed twice; each may stand there once (found ['H100', 'H100'])"),
        ("  longContext: {ropeType: yarn, factor: '0.5'}", "spec.longContext.factor: must be a number of at least 1 in plain digits, as 4 or 2.5 (found '0.5')"),
        ("  podLabels: {team: a b}", "spec.podLabels.team: must hold only letters, digits, '-', '_' and '.', and begin and end with a letter or a digit (found 'a b')"),
        ("  workload: {requestsPerSecond: 12.5}", 'spec.workload.requestsPerSecond: must be a number in plain digits that is not negative, without a unit; write a whole one as 20, and others in quotes, as "2.49" (found 12.5)'),
        ("  podAnnotations: {a: null}", "spec.podAnnotations.a: must be text; put it in quotes (found null)"),
        ("  podAnnotations: {a: {b: c}}", "spec.podAnnotations.a: must be text; write it as one block behind '|' (found {'b': 'c'})"),
        ("  scaling: {min: 4, max: 2}", "spec.scaling.min: min must not be above max (found 4, and max 2)"),
        (
            "  podPatches: [{op: add, path: /spec/hostname, value: chat}]",
            "spec.podPatches[0].value: not JSON text; write a string with its quotes, as '\"64Gi\"', or an object (found 'chat')",
        ),
    ],
)  # fmt: skip
def test_a_problem_names_the_field_the_value_and_what_would_be_right(spec: str, expected: str) -> None:
    assert one(spec) == [expected]


@pytest.mark.parametrize("source", ["hf:/a/b", "https://huggingface.co/a/b", "hf://ä/b", "models/a/b"])
def test_a_source_that_is_none_is_told_the_forms_of_one_in_words(source: str) -> None:
    [problem] = load_deployments(f"{HEAD}spec:\n  model: {{source: '{source}'}}\n").problems
    assert str(problem).startswith("spec.model.source: must be hf://ORG/NAME or ORG/NAME, ")
    assert str(problem).endswith(f"(found '{source}')")


def test_a_text_in_place_of_a_group_is_told_how_it_is_written_where_only_one_field_must_be_set() -> None:
    [problem] = load_deployments(f"{HEAD}spec:\n  model: Qwen/Qwen3-8B\n").problems
    assert str(problem).startswith("spec.model: must be a group of fields: source, ")
    assert str(problem).endswith("; write {source: \"Qwen/Qwen3-8B\"} (found 'Qwen/Qwen3-8B')")


@pytest.mark.parametrize(
    ("value", "levels"),
    [("[" * 65 + "]" * 65, 65), ('{"a":' * 990 + "1" + "}" * 990, 990), ("[" * 8192, 8192)],
)
def test_a_patch_deeper_than_any_pod_is_refused_before_anybody_goes_down_it(value: str, levels: int) -> None:
    patch = {"op": "add", "path": "/spec/x", "value": value}
    spec = {"model": {"source": "hf://a/b"}, "podPatches": [patch]}
    with pytest.raises(ValidationError, match=f"{levels} levels deep; 64 are allowed"):
        LLMDeployment.observed({"metadata": {"name": "chat"}, "spec": spec})


@pytest.mark.parametrize("value", ["[" * 64 + "]" * 64, json.dumps("[" * 4000), json.dumps('"' + "{" * 999)])
def test_signs_within_texts_of_a_patch_are_no_levels(value: str) -> None:
    assert one(f"  podPatches: [{{op: add, path: /spec/x, value: {json.dumps(value)}}}]") == []


def test_all_problems_of_a_file_are_told_at_once() -> None:
    assert len(one("  replicas: x\n  paused: 3\n  slo: {itlP99Ms: 0}")) == 3


def test_lines_may_end_as_they_do_on_windows() -> None:
    assert not load_deployments(f"{HEAD}spec:\n{MODEL}".replace("\n", "\r\n")).problems


def test_a_thousand_problems_are_a_hundred_and_a_count() -> None:
    problems = one("  podPatches: [" + "a," * 1000 + "]")
    assert len(problems) == 101
    assert problems[-1] == "900 more problems"


def test_maps_are_written_in_one_order_whoever_wrote_them() -> None:
    both = [
        load_deployments(f"{HEAD}spec:\n{MODEL}  podLabels: {labels}").deployments[0]
        for labels in ("{a: x, b: y}", "{b: y, a: x}")
    ]
    assert str(both[0].to_dict()) == str(both[1].to_dict())


def test_the_model_is_required() -> None:
    (problem,) = load_deployments(f"{HEAD}spec: {{}}").problems
    assert str(problem) == "spec.model: must be set: a group with source"


def test_a_group_that_is_missing_is_shown_with_what_it_may_hold() -> None:
    assert one("  scaling: {min: 0, max: 2, zero: {}}") == [
        (
            "spec.scaling.zero.wake: must be set: a group with query or annotation; write {annotation: true} or "
            '{query: "sum(gateway_queue)"}'
        )
    ]


@pytest.mark.parametrize(
    ("source", "right"),
    [
        ("hf://Qwen/Qwen3-8B", True),
        ("Qwen/Qwen3-8B", True),
        ("hf://gpt2", True),
        ("modelscope://Qwen/Qwen3-8B", True),
        ("s3://bucket/models/qwen", True),
        ("oci://registry.example.com:5000/models/qwen@sha256:0123", True),
        ("pvc://models", True),
        ("pvc://models/qwen3", True),
        ("/models/qwen", True),
        ("gpt2", False),
        ("models/../../etc/passwd", False),
        ("file:///etc/passwd", False),
        ("https://example.com/model", False),
        ("oci://https://registry.example.com/models/qwen", False),
        ("s3://https://bucket.s3.amazonaws.com/models", False),
        ("hf://Qwen/Qwen3-8B --trust-remote-code", False),
        ("hf://Qwen/Qwen3-8B\n", False),
        ("pvc://Models", False),
        ("", False),
    ],
)
def test_a_source_says_where_the_model_is(source: str, right: bool) -> None:
    text = f"{HEAD}spec: {{model: {{source: {json.dumps(source)}}}}}"
    assert (not load_deployments(text).problems) == right


@pytest.mark.parametrize(
    ("source", "scheme", "location"),
    [
        ("Qwen/Qwen3-8B", "hf", "Qwen/Qwen3-8B"),
        ("hf://Qwen/Qwen3-8B", "hf", "Qwen/Qwen3-8B"),
        ("s3://bucket/a/b", "s3", "bucket/a/b"),
        ("/models/qwen", "path", "/models/qwen"),
    ],
)
def test_a_source_is_taken_apart(source: str, scheme: str, location: str) -> None:
    (deployment,) = load_deployments(f"{HEAD}spec: {{model: {{source: {source}}}}}").deployments
    assert (deployment.spec.model.scheme, deployment.spec.model.location) == (scheme, location)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: !!python/object:os.system x", "tag", id="a Python tag"),
        pytest.param("a: !custom x", "tag '!custom' is not allowed", id="a tag of its own"),
        pytest.param("a: !!binary aGk=", "tag", id="binary"),
        pytest.param("a: !!set {x}", "tag", id="a set"),
        pytest.param("a: 1\na: 2", "line 2: 'a' stands there twice", id="a key twice"),
        pytest.param("{b: 1, 'b': 2}", "'b' stands there twice", id="a key twice in JSON's form"),
        pytest.param("1: x", "a key must be text; put '1' in quotes", id="a number as a key"),
        pytest.param("on: x", "a key must be text; put 'on' in quotes", id="a boolean as a key"),
        pytest.param("? [a]\n: x", "a key must be text", id="a list as a key"),
        pytest.param("a: {<<: 3}", "<< takes a group of fields", id="a merge of no group"),
        pytest.param("a: [", "line 1", id="a bracket that never closes"),
        pytest.param("\ta: 1", "line 1", id="a tab as indentation"),
        pytest.param("[" * (MAX_DEPTH + 1), "nested deeper than 64", id="depth"),
        pytest.param("[" * 100_000, "nested deeper than 64", id="much depth"),
        pytest.param("&a [*a]", "an alias contains itself", id="an alias within itself"),
        pytest.param("a: *b", "undefined alias", id="an alias of nothing"),
        pytest.param(
            "a: \u202eevil", "line 1: holds RIGHT-TO-LEFT OVERRIDE (U+202E)", id="text that turns around"
        ),
        pytest.param("a: b\u200bc", "ZERO WIDTH SPACE (U+200B)", id="an invisible space"),
        pytest.param("a: b\u2028c: d", "LINE SEPARATOR (U+2028)", id="a line break that no editor shows"),
        pytest.param("a: b\x0bc", "line 1: holds a control character (U+000B)", id="a vertical tab"),
        pytest.param("a: b\x00c", "U+0000", id="a null byte"),
        pytest.param("a: b\x1b[31mc", "U+001B", id="a terminal's escape"),
        pytest.param(
            'a: {b: ["x", "\\e[31m"]}', "a.b[1]: holds a control character (U+001B)", id="an escape in quotes"
        ),
        pytest.param(
            f"a: {'9' * 5000}",
            "line 1: a number of 5000 digits, more than any field takes",
            id="a number without end",
        ),
        pytest.param(b"a: \xff", "not UTF-8: byte 3 is 0xff", id="bytes that are no text"),
        pytest.param("#" * (MAX_BYTES + 1), "larger than 1048576 bytes (1 MiB)", id="a large file"),
    ],
)
def test_text_that_nobody_vouches_for_is_refused_with_a_reason(text: str | bytes, expected: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_documents(text)
    assert expected in str(caught.value)


def test_aliases_that_multiply_are_refused_before_they_cost_anything() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(SpecError, match="more than 100000 values"):
        parse_documents("\n".join(lines))


def test_merges_that_multiply_are_refused_before_they_cost_anything() -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 30)]
    with pytest.raises(SpecError, match="<< brings in more than 100000 values"):
        parse_documents("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "last"),
    [
        pytest.param("z: {<<: {x: 1, y: 1}, y: 2}", {"x": 1, "y": 2}, id="what is written wins"),
        pytest.param("z: {<<: [{x: 1}, {x: 2, y: 2}]}", {"x": 1, "y": 2}, id="the first part wins"),
        pytest.param("z: &z {<<: *z, x: 1}", {"x": 1}, id="a part that is the whole"),
        pytest.param(
            "a: &a {x: 1}\nb: {deep: &b {<<: *a, x: 2}}\nz: {<<: *b}",
            {"x": 2},
            id="a part that merges itself",
        ),
    ],
)
def test_merge_keys_mean_what_they_mean_to_the_api_server(text: str, last: dict[str, int]) -> None:
    (document,) = parse_documents(text)
    assert document["z"] == last


def test_many_values_are_refused_before_all_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.api.plainyaml.MAX_VALUES", 100)
    with pytest.raises(SpecError, match="more than 100 values; split the file"):
        parse_documents(f"[{'a,' * 200}]")


def test_anchors_and_merge_keys_that_stay_small_are_read() -> None:
    (document,) = parse_documents("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}")
    assert document["use"] == {"x": 1, "y": 3}


@pytest.mark.parametrize("text", ["2026-01-01", "1:30", "0o17", "0x", "1_000_x", "1.2.3", "~x", "v1.0"])
def test_text_that_yaml_would_like_to_change_stays_text(text: str) -> None:
    assert parse_documents(f"a: {text}") == [{"a": text}]


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("-3", -3), ("010", 8), ("0x1F", 31), ("1.5", 1.5), ("1e3", 1000.0), ("true", True), ("null", None), ("no", False)],
)  # fmt: skip
def test_scalars_are_read_as_the_api_server_reads_them(text: str, value: object) -> None:
    assert parse_documents(f"a: {text}") == [{"a": value}]


def test_a_version_without_quotes_is_named() -> None:
    assert one("  engine: {version: 0.33}") == [
        "spec.engine.version: must be text; put it in quotes (found 0.33)"
    ]


def test_a_whole_number_needs_no_quotes_where_others_do() -> None:
    spec = f"{HEAD}spec:\n{MODEL}  workload: {{requestsPerSecond: 20}}\n  cost: {{maxPerHour: 7}}\n"
    (read,) = load_deployments(spec).or_raise()
    assert (read.spec.workload.requests_per_second, read.spec.cost.max_per_hour) == ("20", "7")


def test_json_is_read_too() -> None:
    document = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "LLMDeployment",
        "metadata": {"name": "chat"},
        "spec": {"model": {"source": "Qwen/Qwen3-8B"}},
    }
    assert load_deployments(json.dumps(document)).or_raise()[0].name == "chat"


def test_several_documents_are_read_and_problems_name_theirs() -> None:
    good = f"{HEAD}spec:\n{MODEL}"
    bad = good.replace("name: chat", "name: other") + "  replicas: x\n"
    loaded = load_deployments(f"{good}---\n---\n{bad}", file="llm.yaml")
    assert [deployment.name for deployment in loaded.deployments] == ["chat"]
    assert [problem.field for problem in loaded.problems] == ["llm.yaml: other: spec.replicas"]


def test_objects_of_others_in_a_manifest_are_passed_over_by_name() -> None:
    loaded = load_deployments(f"{SECRET}---\n{HEAD}spec:\n{MODEL}")
    assert (len(loaded.deployments), loaded.problems, loaded.passed_over) == (1, (), ("Secret hf",))


@pytest.mark.parametrize(
    "slip",
    [
        HEAD.replace("plimsoll.dev/v1alpha1", "v1"),
        HEAD.replace("v1alpha1", "v1"),
        HEAD.replace("kind: LLMDeployment", "kind: LLMDeploymnet"),
        HEAD.replace("kind: LLMDeployment\n", ""),
    ],
    ids=["our kind in another group", "another version", "a slip in the kind", "no kind"],
)
def test_a_slip_in_what_is_meant_for_us_is_never_passed_over(slip: str) -> None:
    loaded = load_deployments(f"{SECRET}---\n{slip}spec:\n{MODEL}")
    assert (len(loaded.problems), loaded.deployments) == (1, ())


def test_lists_as_kubectl_prints_them_are_opened() -> None:
    item = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "LLMDeployment",
            "metadata": {"name": "chat", "managedFields": [{"manager": "x"}], "uid": "1"},
            "spec": {"model": {"source": "Qwen/Qwen3-8B"}}}  # fmt: skip
    loaded = load_deployments(json.dumps({"apiVersion": "v1", "kind": "List", "items": [item]}))
    assert not loaded.problems
    assert loaded.deployments[0].name == "chat"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no LLMDeployment in it"),
        ("# nothing\n---\n", "no LLMDeployment in it"),
        (f"{SECRET}---\n{SECRET}", "no LLMDeployment in it (found Secret hf, Secret hf)"),
        ("hello", "must be an object of kind LLMDeployment"),
        ("a:\n\tb: 1", "line 2: a tab where YAML wants spaces"),
        ("[1]", "must be an object of kind LLMDeployment"),
        ("kind: LLMDeployment", "apiVersion: must be plimsoll.dev/v1alpha1"),
        (
            "apiVersion: plimsoll.dev/v1alpha1\nkind: Deployment",
            "kind: must be LLMDeployment (found 'Deployment')",
        ),
    ],
)
def test_what_is_no_resource_is_named(text: str, expected: str) -> None:
    (problem,) = load_deployments(text).problems
    assert expected in str(problem)


def test_the_same_name_twice_is_a_problem() -> None:
    good = f"{HEAD}spec:\n{MODEL}"
    (problem,) = load_deployments(f"{good}---\n{good}").problems
    assert str(problem) == "metadata.name: stands there 2 times in namespace default (found chat)"


def test_or_raise_raises_all_problems() -> None:
    with pytest.raises(SpecError) as caught:
        load_deployments(f"{HEAD}spec:\n{MODEL}  replicas: x\n  paused: 3").or_raise()
    assert len(caught.value.problems) == 2


def test_an_empty_config_is_valid() -> None:
    assert load_config("").trust.remote_code == ()


def test_a_config_names_its_problems() -> None:
    with pytest.raises(SpecError) as caught:
        load_config(
            "apiVersion: plimsoll.dev/v1alpha1\nkind: OperatorConfig\nbudgts: []\n", file="config.yaml"
        )
    assert str(caught.value) == "config.yaml: budgts: is no known field; did you mean budgets?"


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_no_text_makes_reading_fail_in_another_way(text: str | bytes) -> None:
    loaded = load_deployments(text)
    assert loaded.problems
    assert all(problem.message for problem in loaded.problems)


@given(st.text())
def test_a_shown_value_is_short_and_printable(text: str) -> None:
    shown = show(text)
    assert len(shown) <= 80
    assert shown.isprintable()
