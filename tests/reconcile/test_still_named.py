"""What an old set's pods cannot start without stays as long as the set does, though the spec has no word of it any more."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.kube.applier import Applied
from plimsoll.objects import Owner, Ref
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from tests.kube.test_applier import Storing, known
from tests.planning.asking import deployment
from tests.reconcile.test_decide import after, seen

TRUSTS = {"trust": {"serviceAccounts": [{"namespace": "team-a", "names": ["mine"]}]}}
SHARED = {"weights": {"claimTemplate": {"accessMode": "ReadWriteMany"}}}
ADAPTERS = {"items": [{"name": "a", "source": "hf://org/a"}]}

EDITS: dict[str, tuple[dict[str, Any], dict[str, Any], Ref]] = {
    "another account": (
        {},
        {"scheduling": {"serviceAccount": "mine"}},
        Ref("v1", "ServiceAccount", "team-a", "chat"),
    ),
    "another claim": (
        {"storage": SHARED},
        {"storage": {"weights": {"claim": {"name": "theirs"}}}},
        Ref("v1", "PersistentVolumeClaim", "team-a", "chat-weights"),
    ),
    "no list of adapters": (
        {"adapters": {"runtimeLoading": True, **ADAPTERS}},
        {"adapters": ADAPTERS},
        Ref("v1", "ConfigMap", "team-a", "chat-adapters"),
    ),
}


def applied(before: Decision, now: Decision, *, spared: frozenset[str] = frozenset()) -> Applied:
    """What becomes of the children that a decision has left by the next one."""
    applier = known(Storing(), *before.manifests)
    return asyncio.run(applier.apply(Owner("team-a", "chat"), now.manifests, spared=spared or now.spared))


@pytest.mark.parametrize("what", EDITS)
def test_what_an_old_set_names_stays_until_it_goes(what: str) -> None:
    before, edit, ref = EDITS[what]
    asked = seen(spec={"replicas": 2, **before}, config=OperatorConfig.model_validate(TRUSTS))
    first = decide(asked)
    edited = replace(after(first, asked), deployment=deployment(replicas=2, **edit))
    then, now = first, decide(edited)
    (old,) = first.revisions
    for _ in range(8):
        gone = applied(then, now).deleted
        if old not in now.revisions:
            break
        assert ref not in gone
        # It is no more among what is wanted, but it is there.
        kept = tuple(one for one in first.manifests if one.ref == ref)
        then = replace(now, manifests=(*now.manifests, *kept))
        now = decide(after(now, edited))
    assert old not in now.revisions
    assert ref in gone


def test_what_a_set_may_name_whose_template_nobody_can_read_stays() -> None:
    asked = seen(spec={"storage": SHARED}, config=OperatorConfig.model_validate(TRUSTS))
    first = decide(asked)
    account = {"scheduling": {"serviceAccount": "mine"}}
    edited = replace(after(first, asked), revisions={}, deployment=deployment(**account))
    (old,) = first.revisions
    found = decide(edited)
    assert found.spared == {old[-names.SET_HASH_LENGTH :]}
    assert applied(first, found).deleted == []
