"""What is let in, what is turned down and what is only told: the verdict before anything is stored."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.inventory import Inventory
from plimsoll.planning.plan import Plan
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.reconcile.admission import Named, Verdict, forbidden, has_errors, judged, newly_named
from tests.planning.asking import LLAMA, LLAMA_70B, cpu_pool, deployment, facts, inventory, pool

TRUSTING = OperatorConfig.model_validate(
    {
        "trust": {"serviceAccounts": [{"namespace": "*", "names": ["*"]}]},
        "prices": {"gpuHour": [{"product": "H1000", "perHour": "2"}]},
    }
)


def planned(spec: dict[str, Any], fleet: Inventory, *, unread: str | None = None) -> Plan:
    asked = deployment(**{"workload": {"contextTokens": 8192}, **spec})
    known = facts(asked) if unread is None else PlanFacts(model=None, problem=unread)
    return plan(asked, fleet, known, config=TRUSTING)


def verdict(
    spec: dict[str, Any], *, fleet: Inventory | None = None, before: dict[str, Any] | None = None
) -> Verdict:
    fleet = inventory(pool()) if fleet is None else fleet
    stood = None if before is None else planned(before, fleet)
    return judged(planned(spec, fleet), fleet, on_cpu="cpu" in (spec.get("topology") or {}), before=stood)


def test_what_fits_is_let_in_without_a_word() -> None:
    assert verdict({}) == Verdict()


@pytest.mark.parametrize(
    ("spec", "words", "is_forbidden"),
    [
        (
            {"model": {"source": f"hf://{LLAMA}", "trustRemoteCode": True}},
            ("model.trustRemoteCode (true)", "trust.remoteCode does not list", "What helps: trust in the admin's"),
            True,
        ),
        ({"engine": {"version": "0.10.0"}}, ("engine.version", "0.10.0", "must be at least 0.18.0"), True),
        ({"topology": {"gpuProducts": ["H1000"]}}, ("topology.gpuProducts", "H1000", "write H100-SXM-80GB"), False),
        ({"topology": {"gpuProducts": ["L4"]}}, ("topology", "What helps: topology.gpuProducts"), False),
        (
            {"model": {"source": f"hf://{LLAMA_70B}"}, "topology": {"tensor": 1}},
            ("topology", "no layout fits these devices", "What helps:"),
            False,
        ),
        (
            {"scaling": {"max": 4, "zero": {"wake": {"query": "sum(queue"}}}},
            ("scaling.zero.wake.query (sum(queue)", "the ( at character 4", "What helps: a ) that closes it"),
            False,
        ),
    ],
    ids=["code of a model's repository", "an engine that is not safe", "no such GPU", "no node with it", "too large", "no query"],
)  # fmt: skip
def test_what_can_or_may_never_be_is_turned_down_with_field_value_and_remedy(
    spec: dict[str, Any], words: tuple[str, ...], is_forbidden: bool
) -> None:
    found = verdict(spec)
    assert not found.allowed
    assert found.forbidden is is_forbidden
    for word in words:
        assert word in found.problems[0]


def test_what_fits_only_later_is_let_in_with_a_warning() -> None:
    found = verdict({"replicas": 500})
    assert found.allowed
    assert any("replicas" in warning and "What helps" in warning for warning in found.warnings)


def test_a_fleet_of_which_nothing_is_known_yet_is_no_reason_to_turn_down() -> None:
    found = verdict({}, fleet=inventory())
    assert found.allowed
    assert "holds no GPU nodes" in found.warnings[0]


GONE = pool(free={}, unavailable={"cordoned": 2})


@pytest.mark.parametrize(
    ("spec", "fleet", "let_in"),
    [
        ({}, [cpu_pool()], True),
        ({}, [GONE], True),
        ({}, [GONE, cpu_pool()], True),
        ({"topology": {"gpuProducts": ["L4"]}}, [GONE, pool("A100-SXM-80GB")], False),
        ({"topology": {"gpuProducts": ["L4"]}}, [pool(free={}, declared_nodes=1)], False),
        ({"topology": {"cpu": {}}}, [pool()], True),
        ({"topology": {"cpu": {}, "nodeSelector": {"a": "b"}}}, [GONE, cpu_pool()], False),
    ],
    ids=["only CPUs yet", "all cordoned", "cordoned beside CPUs", "others take pods", "others may be made", "no CPUs yet",
         "CPUs of which none will do"],
)  # fmt: skip
def test_what_may_come_or_come_back_is_no_reason_to_turn_down(
    spec: dict[str, Any], fleet: list[Any], let_in: bool
) -> None:
    found = verdict(spec, fleet=inventory(*fleet))
    assert found.allowed is let_in
    assert found.warnings or not let_in


def test_a_model_that_cannot_be_read_now_is_told_and_what_is_not_trusted_still_turned_down() -> None:
    fleet = inventory(pool())
    asked: dict[str, Any] = {"model": {"source": "hf://nobody/knows"}}
    found = judged(planned(asked, fleet, unread="the hub does not answer"), fleet)
    assert found.allowed
    assert "the hub does not answer" in found.warnings[0]
    asked["engine"] = {"version": "0.10.0"}
    assert not judged(planned(asked, fleet, unread="the hub does not answer"), fleet).allowed


def test_an_edit_is_not_held_responsible_for_what_was_wrong_before_it() -> None:
    old = {"engine": {"version": "0.10.0"}}
    found = verdict({**old, "replicas": 0}, before=old)
    assert found.allowed
    assert any("0.10.0" in warning for warning in found.warnings)
    assert not verdict({**old, "topology": {"gpuProducts": ["H1000"]}}, before=old).allowed


def test_slips_in_the_admins_file_are_not_told_to_users() -> None:
    fleet = inventory(pool())
    assert any(one.field == "prices.gpuHour" for one in planned({}, fleet).findings)
    assert verdict({}).warnings == ()


def test_warnings_are_as_short_as_clients_show_them() -> None:
    fleet = inventory(pool())
    made = planned({"model": {"source": "hf://nobody/knows"}}, fleet, unread="für " * 200)
    (warning,) = judged(made, fleet).warnings
    assert len(warning.encode()) <= 250
    assert warning.endswith("…")


NAMING = {
    "model": {"source": f"hf://{LLAMA}", "tokenSecret": {"name": "hub"}},
    "scheduling": {"serviceAccount": "robot"},
}


def test_only_what_an_edit_newly_names_needs_a_right() -> None:
    asked = deployment(**NAMING)
    assert {one.name for one in newly_named(asked, None)} == {"hub", "robot"}
    assert newly_named(asked, asked) == ()
    other = {**NAMING, "model": {"source": f"hf://{LLAMA}", "tokenSecret": {"name": "other"}}}
    assert newly_named(deployment(**other), asked) == (
        Named("spec.model.tokenSecret.name", "secrets", "other"),
    )


def test_a_secret_that_a_patch_brings_needs_a_right_as_any_other() -> None:
    brings = {
        "op": "add",
        "path": "/spec/containers/0/envFrom",
        "value": '[{"secretRef": {"name": "theirs"}}]',
    }
    asked = deployment(podPatches=[brings])
    assert newly_named(asked, None) == (Named("spec.podPatches[0].value", "secrets", "theirs"),)
    assert newly_named(asked, asked) == ()


def test_a_token_that_a_patch_brings_needs_the_right_to_one_of_its_account() -> None:
    """Who named the account before may have had a right that whoever has its token mounted has not."""
    volume = '{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}'
    patches = [{"op": "add", "path": "/spec/volumes/-", "value": volume}]
    before = deployment(scheduling={"serviceAccount": "robot"})
    after = deployment(scheduling={"serviceAccount": "robot"}, podPatches=patches)
    field = "spec.podPatches[0].value"
    assert newly_named(after, before) == (Named(field, "serviceaccounts/token", "robot"),)
    assert newly_named(after, after) == ()
    own = deployment(podPatches=patches)
    assert newly_named(own, None) == (Named(field, "serviceaccounts/token", own.name),)
    (found,) = forbidden("alice", "team-a", newly_named(own, None))
    assert "may neither create a token of this ServiceAccount nor create pods in team-a" in found.message


def test_who_has_no_right_to_what_is_named_hears_which_right_it_takes() -> None:
    fleet = inventory(pool())
    made = planned(NAMING, fleet)
    assert not has_errors(made)
    lacking = newly_named(deployment(**NAMING), None)
    found = judged(made, fleet, rights=forbidden("alice", "team-a", lacking))
    assert not found.allowed
    assert found.forbidden
    assert found.problems == (
        (
            "model.tokenSecret.name ('hub'): 'alice' may neither get this Secret nor create pods in team-a, and so may not "
            "hand it to a model's pods. What helps: the right to get this Secret, or somebody who has it applies this"
        ),
        (
            "scheduling.serviceAccount ('robot'): 'alice' may neither impersonate this ServiceAccount nor create pods in "
            "team-a, and so may not hand it to a model's pods. What helps: the right to impersonate this ServiceAccount, or "
            "somebody who has it applies this"
        ),
    )
