"""Every state of a deployment as Argo CD's health check and kstatus see it: both agree on whether it is done, at work or lost.

The check is Lua, which Argo CD runs as version 5.1 and without a library; so do these tests.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime  # type: ignore[import-untyped]

from charts.generate import CHART
from plimsoll import names
from plimsoll.api.v1alpha1.status import Condition, LLMDeploymentStatus
from plimsoll.status.story import Story
from plimsoll.status.told import status_after
from tests.charts.kstatus import kstatus
from tests.status.every_reason import STORIES
from tests.status.stories import NOW, asked

PATCH = yaml.safe_load((CHART.parents[1] / "docs" / "gitops" / "argocd-cm.yaml").read_text())
(KEY,) = PATCH["data"]
SANDBOX = "os, io, require, dofile, loadfile, package, debug = nil"
AGREED = {
    "Current": {"Healthy"},
    "InProgress": {"Progressing"},
    "Failed": {"Degraded"},
    "Terminating": {"Progressing"},
}


def health(body: dict[str, Any]) -> tuple[str, str]:
    lua = LuaRuntime()
    lua.execute(SANDBOX)
    lua.globals().obj = lua.table_from(body, recursive=True)
    found = lua.execute(PATCH["data"][KEY])
    return found.status, found.message


def resource(story: Story, **metadata: Any) -> dict[str, Any]:
    status = status_after(story, LLMDeploymentStatus(), NOW)
    return {
        "metadata": {"name": "chat", "generation": 3, **metadata},
        "spec": story.deployment.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
        "status": status.model_dump(mode="json", by_alias=True, exclude_none=True),
    }


def test_the_check_is_registered_for_our_kind() -> None:
    assert f"resource.customizations.health.{names.GROUP}_{names.KIND}" == KEY


def defaults_in_lists(schema: dict[str, Any], path: str, *, within: bool = False) -> list[str]:
    found = [path] if within and "default" in schema else []
    for name, inner in schema.get("properties", {}).items():
        found += defaults_in_lists(inner, f"{path}.{name}" if path else name, within=within)
    if isinstance(schema.get("items"), dict):
        found += defaults_in_lists(schema["items"], f"{path}[]", within=True)
    return found


def test_every_default_that_argo_cd_would_take_for_a_difference_is_told() -> None:
    """Its usual comparison passes over fields that are not declared, but compares the lists of a custom resource whole."""
    crd = yaml.safe_load((CHART / "files" / "crd.yaml").read_text())
    (version,) = crd["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    told = (CHART.parents[1] / "docs" / "gitops.md").read_text()
    assert [path for path in defaults_in_lists(spec, "") if f"`{path}`" not in told] == []


def said(case: str) -> dict[str, Condition]:
    return {one.type: one for one in status_after(STORIES[case], LLMDeploymentStatus(), NOW).conditions}


@pytest.mark.parametrize("case", STORIES)
def test_argo_cd_and_kstatus_agree_and_a_message_is_there(case: str) -> None:
    story, body = STORIES[case], resource(STORIES[case])
    status, message = health(body)
    assert message
    if story.paused and "Stalled" not in said(case):
        assert status == "Suspended"
    else:
        assert status in AGREED[kstatus(body)]


@pytest.mark.parametrize("case", STORIES)
def test_what_is_stalled_is_never_healthy_and_what_is_healthy_serves(case: str) -> None:
    status, message = health(resource(STORIES[case]))
    found = said(case)
    assert (status == "Degraded") == ("Stalled" in found)
    if "Stalled" in found:
        assert message == found["Stalled"].message
    assert status != "Healthy" or found["Ready"].status == "True"


@pytest.mark.parametrize("case", STORIES)
def test_conditions_of_an_older_spec_say_nothing(case: str) -> None:
    body = resource(STORIES[case], generation=4)
    assert (health(body)[0], kstatus(body)) == ("Progressing", "InProgress")


@pytest.mark.parametrize("case", STORIES)
def test_what_is_being_deleted_is_at_work(case: str) -> None:
    body = resource(STORIES[case], deletionTimestamp=NOW)
    assert (health(body)[0], kstatus(body)) == ("Progressing", "Terminating")


def test_a_resource_without_a_status_is_not_seen_yet_which_kstatus_does_not_know() -> None:
    body: dict[str, Any] = {"metadata": {"name": "chat", "generation": 1}, "spec": {}}
    assert (health(body)[0], kstatus(body)) == ("Progressing", "Current")


def test_the_first_status_is_at_work() -> None:
    body = resource(Story(deployment=asked(), plan=None, rollout=None))
    assert (health(body)[0], kstatus(body)) == ("Progressing", "InProgress")


def test_a_condition_of_another_writer_that_lags_is_left_out() -> None:
    body = resource(STORIES["it serves"])
    body["status"]["conditions"].append(
        {
            "type": "Stalled",
            "status": "True",
            "reason": "StartFailed",
            "message": "old",
            "observedGeneration": 2,
        }
    )
    assert health(body)[0] == "Healthy"
