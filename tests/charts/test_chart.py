"""The chart's generated files are up to date, and its rights are those of the kinds that the operator reads and writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.generate import CHART, described, generated
from plimsoll import __version__
from plimsoll.api.config import OperatorConfig
from plimsoll.api.crd import crd_yaml
from plimsoll.kube.kinds import CHILDREN, NODE, OWNER, POD
from plimsoll.kube.rbac import CHART_FILE, rbac_yaml, rules, webhook_rules
from plimsoll.render.routing import OPERATOR_PODS

ROOT = CHART.parents[1]
GOLDEN = sorted((ROOT / "tests/charts/golden").glob("*.yaml"))


@pytest.mark.parametrize("file", [path.name for path in generated()])
def test_a_file_made_from_the_values_is_up_to_date(file: str) -> None:
    made = {path.name: text for path, text in generated().items()}
    assert (CHART / file).read_text() == made[file], "run `make generate`"


def test_the_operators_image_is_months_behind_the_fields_of_the_crd() -> None:
    """production-stack 842: fields that the CRD let in waited for an image that could read them. Here a chart is of one release: its
    CRD is made from the code that reads it, and its image is that code's, unless who installs it names another."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    assert (CHART / "files/crd.yaml").read_text() == crd_yaml()
    image = yaml.safe_load((CHART / "values.yaml").read_text())["image"]
    assert (image["tag"], image["digest"]) == ("", "")
    rendered = yaml.safe_load_all((ROOT / "tests/charts/golden/default.yaml").read_text())
    (operator,) = (one for one in rendered if one and one["kind"] == "Deployment")
    (container,) = operator["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"{image['repository']}:{__version__}"


def test_the_rights_in_the_chart_are_up_to_date() -> None:
    assert (ROOT / CHART_FILE).read_text() == rbac_yaml(), "run `make generate`"


def test_every_value_says_what_it_is_for() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    told = {path for path, _ in described((CHART / "values.yaml").read_text())}
    groups = {path.rpartition(".")[0] for path in told} | {path.split(".")[0] for path in told}
    assert [key for key in values if key not in told and key not in groups] == []


def test_every_kind_that_may_be_a_child_may_be_written_and_others_only_be_seen() -> None:
    made = rules()
    verbs = {
        (group, resource): set(rule["verbs"])
        for rule in (*made["cluster"], *made["namespaced"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    for kind in CHILDREN:
        needed = {"create", "patch", "list", "watch"} | (set() if kind.lasts else {"delete"})
        assert needed <= verbs[kind.group, kind.plural], kind
        assert not kind.lasts or "delete" not in verbs[kind.group, kind.plural], kind
    for kind in (NODE, OWNER):
        assert verbs[kind.group, kind.plural] == {"list", "watch"}
    # Pods that read models are made once and never changed.
    assert verbs[POD.group, POD.plural] == {"create", "delete", "list", "patch", "watch"}


def test_where_owner_references_are_checked_each_child_may_be_deleted_and_its_owner_finalized() -> None:
    """An orphan is adopted by a change of its owner references, which is then let through only to who may delete it."""
    made = rules()
    given = {
        (group, resource, verb)
        for rule in (*made["namespaced"], *made["ownerReferences"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert {(kind.group, kind.plural, "delete") for kind in CHILDREN} <= given
    assert (OWNER.group, f"{OWNER.plural}/finalizers", "update") in given
    rendered = list(yaml.safe_load_all((ROOT / "tests/charts/golden/namespaced.yaml").read_text()))
    roles = [
        one["rules"] for one in rendered if one["kind"] == "Role" and made["namespaced"][0] in one["rules"]
    ]
    assert len(roles) == 2
    assert all(rule in role for role in roles for rule in made["ownerReferences"])


def test_no_rule_has_a_wildcard_and_none_names_secrets_or_a_way_to_more_rights() -> None:
    words = {word for each in rules().values() for rule in each for part in rule.values() for word in part}
    assert not words & {
        "*",
        "secrets",
        "roles",
        "rolebindings",
        "clusterroles",
        "escalate",
        "bind",
        "impersonate",
    }
    assert not {word for word in words if word.startswith("pods/")}


def test_of_config_maps_beside_the_operator_only_its_own_may_be_read_and_written() -> None:
    found = {
        verb: rule.get("resourceNames")
        for rule in rules()["own"]
        if rule["resources"] == ["configmaps"]
        for verb in rule["verbs"]
    }
    assert found == {
        "create": None,
        "get": ["plimsoll-learned", "plimsoll-learned-seed"],
        "patch": ["plimsoll-learned"],
    }


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_the_operator_is_let_in_to_what_serves_whatever_it_is_called_and_no_other_operator(
    file: Path,
) -> None:
    (made,) = (one for one in yaml.safe_load_all(file.read_text()) if one["kind"] == "Deployment")
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert OPERATOR_PODS.items() <= labels.items()
    common = {key: value for key, value in labels.items() if key.startswith("app.kubernetes.io/")}
    assert not OPERATOR_PODS.items() <= common.items(), "what others' pods may bear as well"


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_secrets_and_webhook_configurations_may_be_touched_by_name_alone(file: Path) -> None:
    """Only where the webhook is on, and then one of each."""
    found = [one for one in yaml.safe_load_all(file.read_text()) if one["kind"] in ("Role", "ClusterRole")]
    guarded = {"secrets", "validatingwebhookconfigurations"}
    named = [
        rule.get("resourceNames") or []
        for one in found
        for rule in one["rules"]
        if guarded & {*rule["resources"]}
    ]
    assert all(len(names) == 1 for names in named)
    assert bool(named) == (file.stem != "default")
    assert {
        resource for rules_ in webhook_rules().values() for rule in rules_ for resource in rule["resources"]
    } == {
        *guarded,
        "localsubjectaccessreviews",
    }


@pytest.mark.parametrize("file", sorted((CHART / "ci").glob("*.yaml")), ids=lambda file: Path(file).stem)
def test_the_admins_part_of_each_set_of_values_is_one_that_the_operator_reads(file: Path) -> None:
    OperatorConfig.model_validate(yaml.safe_load(file.read_text()).get("config") or {})


def schema_of(path: str) -> dict[str, Any]:
    found: Any = json.loads((CHART / "values.schema.json").read_text())
    for part in path.split("."):
        found = found["properties"][part]
    return dict(found)


@pytest.mark.parametrize(
    "path",
    ["commonLabels", "podLabels", "podAnnotations", "nodeSelector", "serviceAccount.annotations"]
    + [f"metrics.{kind}.labels" for kind in ("podMonitor", "rules", "dashboards")]
    + ["metrics.dashboards.annotations", "webhook.annotations"],
)  # fmt: skip
def test_a_label_that_is_a_number_is_refused_by_helm_and_not_by_the_api_server(path: str) -> None:
    assert schema_of(path)["additionalProperties"] == {"type": "string"}


@pytest.mark.parametrize("path", ["commonLabels", "podLabels"])
def test_a_label_that_the_chart_sets_itself_cannot_be_set_twice(path: str) -> None:
    refused = schema_of(path)["propertyNames"]["not"]["enum"]
    rendered = yaml.safe_load_all((ROOT / "tests/charts/golden/default.yaml").read_text())
    (operator,) = (one for one in rendered if one and one["kind"] == "Deployment")
    pod = operator["spec"]["template"]["metadata"]["labels"]
    assert set(pod) <= set(refused)


def test_a_field_that_the_admins_file_does_not_have_is_refused_before_a_pod_fails_of_it() -> None:
    config = schema_of("config")
    assert config["additionalProperties"] is False
    assert set(config["properties"]) == {info.alias for info in OperatorConfig.model_fields.values()}
    prices = config["properties"]["prices"]
    assert prices["additionalProperties"] is False
    assert prices["properties"]["gpuHour"]["items"]["required"] == ["product", "perHour"]
    assert prices["properties"]["gpuHour"]["items"]["properties"]["perHour"]["type"] == ["integer", "string"]
    assert prices["properties"]["cpuCoreHour"]["type"] == ["integer", "string", "null"]


def test_every_field_of_the_admins_file_is_taken_back_by_null_as_the_operator_takes_it() -> None:
    fields = schema_of("config")["properties"]
    assert [name for name, field in fields.items() if "null" not in field["type"]] == []
    OperatorConfig.model_validate(dict.fromkeys(set(fields) - {"apiVersion", "kind"}))


@pytest.mark.parametrize("field", ["prometheusMatchLabels", "prometheusHeaders"])
def test_a_tenant_that_is_a_number_is_refused_before_a_pod_fails_of_it(field: str) -> None:
    control = schema_of("config.control")["properties"]
    (value,) = control[field]["patternProperties"].values()
    assert (value["type"], control[field]["additionalProperties"]) == ("string", False)


def test_a_chart_that_depends_on_this_one_may_turn_it_on_and_off_by_a_value() -> None:
    """`condition: plimsoll.enabled` hands the value on to this chart."""
    assert schema_of("enabled") == {"type": "boolean"}


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        ("fullnameOverride", ("", "plimsoll-a"), ("Plimsoll", "a_b", "-a", "1a")),
        ("nameOverride", ("", "plimsoll", "4llm"), ("Plimsoll", "-a")),
        (
            "image.repository",
            ("plimsoll", "a.example:5000/all/plimsoll"),
            ("https://a.example/plimsoll", "a//b", ""),
        ),
        ("image.digest", ("", f"sha256:{'0' * 64}"), ("abc", "0" * 64)),
        ("metrics.podMonitor.interval", ("30s", "1m30s", "500ms"), ("30", "5x", "")),
    ],
)
def test_a_text_that_no_object_may_hold_is_refused(
    path: str, good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    pattern = re.compile(schema_of(path)["pattern"])
    assert [text for text in good if not pattern.search(text)] == []
    assert [text for text in bad if pattern.search(text)] == []


def test_secrets_for_pulling_are_objects_with_a_name() -> None:
    assert schema_of("imagePullSecrets")["items"]["required"] == ["name"]
    assert schema_of("env")["items"]["required"] == ["name"]
