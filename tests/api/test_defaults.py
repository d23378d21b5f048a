"""Merging: the strongest layer wins, every value knows its source, and nothing that is merged in breaks a rule."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import Effective, effective
from plimsoll.api.presets import built_in_presets, find_preset, presets
from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1 import LLMDeploymentSpec


def spec(**groups: Any) -> LLMDeploymentSpec:
    return LLMDeploymentSpec.model_validate({"model": {"source": "Qwen/Qwen3-8B"}, **groups})


def config(**groups: Any) -> OperatorConfig:
    return OperatorConfig.model_validate(groups)


def merged(
    given: LLMDeploymentSpec, settings: OperatorConfig | None = None, namespace: str = "team-a"
) -> Effective:
    return effective(given, namespace, settings or OperatorConfig())


def test_without_presets_and_defaults_nothing_is_added() -> None:
    given = spec(workload={"contextTokens": 4096})
    result = merged(given)
    assert result.spec == given
    assert result.source_of("workload.contextTokens").kind == "user"
    assert result.source_of("spec.memory.utilizationPercent").kind == "open"


def test_a_preset_fills_what_the_user_left_open_and_says_so() -> None:
    result = merged(spec(workload={"preset": "chat", "contextTokens": 8192}))
    assert result.spec.workload.context_tokens == 8192
    assert result.spec.engine.max_sequences == 256
    assert str(result.source_of("workload.contextTokens")) == "user"
    assert str(result.source_of("engine.maxSequences")) == "preset:chat"
    assert not result.source_of("engine.maxSequences").binding
    assert result.advice


def test_percentiles_are_one_value_and_never_mixed() -> None:
    result = merged(spec(workload={"preset": "chat", "inputTokens": {"p99": 9000}}))
    assert result.spec.workload.input_tokens is not None
    assert result.spec.workload.input_tokens.p50 is None
    assert str(result.source_of("workload.inputTokens.p99")) == "user"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"workload": {"preset": "chat", "inputTokens": {"p95": 8000}}}, "workload.contextTokens"),
        ({"workload": {"preset": "chat", "inputTokens": {"p50": 4097}}}, "workload.contextTokens"),
        ({"workload": {"preset": "chat"}, "memory": {"kvCacheSize": "8Gi"}}, "memory.utilizationPercent"),
        (
            {"workload": {"preset": "chat"}, "memory": {"tenancySharePercent": 50}},
            "memory.utilizationPercent",
        ),
        ({"workload": {"preset": "batch"}, "engine": {"maxBatchedTokens": 256}}, "engine.maxSequences"),
    ],
)
def test_a_preset_yields_where_it_would_contradict_the_user(given: dict[str, Any], field: str) -> None:
    result = merged(spec(**given))
    assert [one.field for one in result.yielded] == [field]
    assert result.yielded[0].reason
    assert result.source_of(field).kind == "open"


def test_an_exact_namespace_wins_over_a_pattern_and_a_pattern_over_all() -> None:
    settings = config(
        defaults=[
            {"namespace": "*", "spec": {"slo": {"ttftP99Ms": 1, "itlP99Ms": 1}, "replicas": 1}},
            {"namespace": "team-*", "spec": {"slo": {"ttftP99Ms": 2, "itlP99Ms": 2}}},
            {"namespace": "team-a", "spec": {"slo": {"ttftP99Ms": 3}}},
            {"namespace": "team-b", "spec": {"paused": True}},
        ]
    )
    result = merged(spec(), settings)
    assert (result.spec.slo.ttft_p99_ms, result.spec.slo.itl_p99_ms, result.spec.replicas) == (3, 2, 1)
    assert result.spec.paused is None
    assert str(result.source_of("slo.itlP99Ms")) == "namespace default:team-*"


def test_a_preset_named_by_a_namespace_stands_under_that_namespace_and_over_wider_ones() -> None:
    settings = config(
        defaults=[
            {"namespace": "*", "spec": {"engine": {"maxSequences": 7}, "slo": {"itlP99Ms": 7}}},
            {
                "namespace": "team-a",
                "spec": {"workload": {"preset": "batch"}, "engine": {"maxBatchedTokens": 9999}},
            },
        ]
    )
    result = merged(spec(), settings)
    assert result.spec.workload.preset == "batch"
    assert result.spec.engine.max_batched_tokens == 9999
    assert result.spec.engine.max_sequences == 512
    assert result.spec.slo.itl_p99_ms == 7


def test_the_users_preset_replaces_the_one_of_the_namespace() -> None:
    settings = config(defaults=[{"namespace": "*", "spec": {"workload": {"preset": "batch"}}}])
    result = merged(spec(workload={"preset": "chat"}), settings)
    assert result.spec.workload.preset == "chat"
    assert result.spec.engine.max_sequences == 256
    assert not any("batch" in str(source) for source in result.sources.values())


def test_an_admins_preset_takes_the_place_of_a_built_in_one() -> None:
    own = {"name": "chat", "description": "Ours.", "spec": {"engine": {"maxSequences": 33}}}
    result = merged(spec(workload={"preset": "chat"}), config(presets=[own]))
    assert result.spec.engine.max_sequences == 33
    assert str(result.source_of("engine.maxSequences")) == "admin preset:chat"


def test_a_namespaces_demand_yields_to_a_user_who_asks_for_cpus() -> None:
    settings = config(
        defaults=[{"namespace": "*", "spec": {"topology": {"interconnect": "nvlink", "tensor": 2}}}]
    )
    result = merged(spec(topology={"cpu": {}}), settings)
    assert [one.field for one in result.yielded] == ["topology.interconnect"]
    assert result.spec.topology.tensor == 2


def test_the_admins_storage_is_the_last_resort() -> None:
    settings = config(storage={"weights": {"claim": {"name": "models"}}, "cache": {"emptyDir": {}}})
    result = merged(spec(storage={"weights": {"emptyDir": {}}}), settings)
    assert result.spec.storage.weights is not None
    assert result.spec.storage.weights.claim is None
    assert result.spec.storage.cache is not None
    assert str(result.source_of("storage.cache")) == "admin config:storage"
    assert str(result.source_of("storage.weights.emptyDir")) == "user"


def test_labels_are_merged_by_key() -> None:
    settings = config(defaults=[{"namespace": "*", "spec": {"podLabels": {"team": "x", "cost": "y"}}}])
    result = merged(spec(podLabels={"team": "mine"}), settings)
    assert result.spec.pod_labels == {"team": "mine", "cost": "y"}


def test_a_value_of_the_server_in_a_fragment_is_not_the_fragments() -> None:
    settings = config(
        defaults=[
            {"namespace": "team-a", "spec": {"networking": {"service": {"port": 9000}}}},
            {"namespace": "*", "spec": {"networking": {"service": {"type": "LoadBalancer"}}}},
        ]
    )
    service = merged(spec(), settings).spec.networking.service
    assert (service.type, service.port) == ("LoadBalancer", 9000)


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(SpecError, match="no such preset; known: chat, chat-shared-prompts"):
        merged(spec(workload={"preset": "chatt"}))


def test_there_are_nine_built_in_presets_each_documented() -> None:
    assert len(built_in_presets()) == 9
    for preset in built_in_presets():
        assert preset.description
        assert preset.advice
        assert preset.spec.workload.preset is None


def test_presets_demand_nothing_of_the_fleet_and_nothing_of_the_checkpoint() -> None:
    for preset in built_in_presets():
        assert set(preset.spec.to_dict(defaults=False)) <= {"workload", "slo", "memory", "engine"}


def test_the_resources_documentation_names_every_built_in_preset() -> None:
    workload = type(spec().workload).model_fields["preset"].description or ""
    assert all(preset.name in workload for preset in built_in_presets())


def test_presets_are_found_by_name() -> None:
    assert [find_preset(p.name, OperatorConfig()) for p in presets(OperatorConfig())] == list(
        built_in_presets()
    )


@given(
    preset=st.sampled_from([preset.name for preset in built_in_presets()]),
    workload=st.fixed_dictionaries(
        {},
        optional={
            "contextTokens": st.integers(16, 200_000),
            "inputTokens": st.fixed_dictionaries({"p95": st.integers(1, 15)}),
            "concurrency": st.integers(1, 1000),
        },
    ),
    memory=st.fixed_dictionaries({}, optional={"utilizationPercent": st.integers(1, 100)}),
)
def test_what_the_user_wrote_is_never_changed(
    preset: str, workload: dict[str, Any], memory: dict[str, Any]
) -> None:
    result = merged(spec(workload={"preset": preset, **workload}, memory=memory))
    dumped = result.spec.to_dict()
    assert {key: dumped["workload"][key] for key in workload} == workload
    assert {key: dumped["memory"][key] for key in memory} == memory
    assert set(result.sources) <= {path for path in result.sources if result.source_of(path).kind != "open"}


def test_one_spec_is_merged_once_however_often_a_turn_asks_and_another_one_for_itself() -> None:
    asked, admin = spec(workload={"contextTokens": 4096}), config()
    found = effective(asked, "team-a", admin)
    assert effective(asked, "team-a", admin) is found
    equal = effective(spec(workload={"contextTokens": 4096}), "team-a", admin)
    assert equal == found
    assert equal is not found
    other = config(defaults=[{"namespace": "team-b", "spec": {"engine": {"maxSequences": 3}}}])
    assert effective(asked, "team-b", other).spec.engine.max_sequences == 3
    assert effective(asked, "team-a", other) == found
