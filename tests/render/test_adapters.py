"""Adapters that come and go: their list as an object, what pods have for it, and which edit makes a new set."""

import json
from typing import Any

import pytest

from plimsoll.engines.adapters import LIST_FOLDER, LIST_KEY, adapter_list
from plimsoll.facts.engines import engine_facts
from plimsoll.planning.ask.features import MOST_SLOTS, lora_slots
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.pinning import spec_digest
from plimsoll.planning.settings import LoraSlots
from plimsoll.render.sets import set_name
from tests.render.building import config, engine_of, everything, frozen, of_kind, resource, variables
from tests.render.cases import entry

ON = config(runtime={"enabled": True})
OFF = config(runtime={"enabled": False})
SLOTS: dict[str, Any] = {"lora": LoraSlots(max_loras=8, max_rank=16, max_cpu_loras=8)}
SQL = {"name": "sql", "source": "hf://acme/sql", "revision": "v2"}
LAW = {"name": "law", "source": "pvc://adapters/law/best"}
OWN = {"name": "own", "source": "/opt/own"}


def asked(*items, **said):
    adapters = {"runtimeLoading": True, **said} | ({"items": list(items)} if items else {})
    return resource(adapters=adapters)


def set_of(one, there=()):
    found = {revision.name: revision for revision in there}
    return set_name(one, entry(**SLOTS), facts=engine_facts("vllm", None), config=ON, there=found)


def listed(one, admin=ON):
    maps = [body for body in of_kind(everything(one, admin=admin), "ConfigMap") if LIST_KEY in body["data"]]
    return maps[0] if maps else None


def test_the_list_is_an_object_of_the_deployment_that_says_where_each_lies():
    body = listed(asked(SQL, LAW, OWN))
    assert body is not None
    assert body["metadata"]["name"] == "chat-adapters"
    assert "immutable" not in body
    told = json.loads(body["data"][LIST_KEY])
    assert told["schema"] == 1
    law, own, sql = told["adapters"]
    assert (law["name"], law["path"]) == ("law", "/adapters/adapters/law/best")
    assert (own["name"], own["path"]) == ("own", "/opt/own")
    assert (sql["name"], sql["revision"], "path" in sql) == ("sql", "v2", False)


def test_the_order_of_the_items_is_not_in_the_list():
    assert adapter_list(asked(SQL, LAW).spec) == adapter_list(asked(LAW, SQL).spec)


def test_another_revision_or_source_has_another_id():
    ids = [
        json.loads(adapter_list(asked(SQL | other).spec))["adapters"][0]["id"]
        for other in ({}, {"revision": "v3"}, {"source": "hf://acme/other"})
    ]
    assert len(set(ids)) == 3


def test_there_is_a_list_though_it_is_empty_since_pods_wait_for_it():
    body = listed(asked())
    assert body is not None
    assert json.loads(body["data"][LIST_KEY])["adapters"] == []


@pytest.mark.parametrize("one", [resource(adapters={"items": [SQL]}), resource()])
def test_there_is_no_list_without_run_time_loading(one):
    assert listed(one) is None


def test_the_list_stays_and_follows_its_owner_where_supervisors_are_switched_off():
    """Pods that are there still read it."""
    body = listed(asked(SQL), OFF)
    assert body == listed(asked(SQL), ON)
    assert body["data"] != listed(asked(SQL | {"revision": "v3"}), OFF)["data"]


@pytest.mark.parametrize(
    ("one", "admin"), [(asked(SQL), OFF), (resource(adapters={"items": [SQL]}), ON), (resource(), ON)]
)
def test_nobody_reads_a_list_without_a_supervisor_or_without_run_time_loading(one, admin):
    revision = frozen(one, chosen=entry(**SLOTS), admin=admin)
    assert "--adapters" not in engine_of(revision.leader)["args"]


def test_pods_mount_the_list_as_a_folder_and_tell_their_supervisor():
    revision = frozen(asked(SQL), chosen=entry(**SLOTS), admin=ON)
    engine = engine_of(revision.leader)
    (mount,) = [one for one in engine["volumeMounts"] if one["mountPath"] == LIST_FOLDER]
    assert "subPath" not in mount
    (volume,) = [one for one in revision.leader["spec"]["volumes"] if one["name"] == mount["name"]]
    assert volume["configMap"] == {"name": "chat-adapters", "optional": True}
    own = engine["args"][: engine["args"].index("--")]
    assert own[own.index("--adapters") + 1] == f"{LIST_FOLDER}/{LIST_KEY}"
    writable = [one["mountPath"] for one in engine["volumeMounts"] if not one.get("readOnly")]
    into = own[own.index("--adapters-into") + 1]
    assert any(into.startswith(f"{folder}/") for folder in writable)
    assert "--lora-modules" not in engine["args"]


@pytest.mark.parametrize(
    "other",
    [
        asked(SQL),
        asked(SQL | {"revision": "v3"}),
        asked(SQL, OWN, {"name": "third", "source": "s3://bucket/third"}),
        asked(),
    ],
)
def test_editing_the_list_makes_neither_a_new_plan_nor_a_new_set(other):
    one = asked(SQL, OWN)
    assert spec_digest(one.spec) == spec_digest(other.spec)
    assert lora_slots(one.spec) == lora_slots(other.spec)
    assert set_of(one) == set_of(other)
    before, after = (frozen(which, chosen=entry(**SLOTS), admin=ON).leader for which in (one, other))
    assert before == after


@pytest.mark.parametrize("other", [asked(SQL, maxRank=64), asked(SQL, maxLoaded=2), resource()])
def test_slots_and_ranks_are_the_engines_for_its_life(other):
    assert spec_digest(asked(SQL).spec) != spec_digest(other.spec)
    assert set_of(asked(SQL)) != set_of(other)


def test_a_set_of_the_release_before_whose_pods_have_no_list_keeps_its_name():
    """Its digest held no claims: that it is called otherwise today is nobody's edit."""
    before = frozen(asked(), chosen=entry(**SLOTS), admin=OFF)
    listing = frozen(asked(), chosen=entry(**SLOTS), admin=ON)
    assert before.name == listing.name
    assert set_of(asked(LAW), [before]) == before.name
    assert set_of(asked(LAW), [listing]) != before.name
    now = frozen(asked(LAW), chosen=entry(**SLOTS), admin=ON)
    assert set_of(asked(LAW), [before, now]) == now.name
    assert set_of(asked(LAW, maxRank=64), [before]) != before.name


def test_a_further_claim_makes_a_new_set_and_another_folder_of_it_does_not():
    one = asked(SQL, LAW)
    assert set_of(asked(SQL)) != set_of(one)
    assert set_of(one) == set_of(asked(LAW | {"source": "pvc://adapters/other"}))
    assert set_of(one) != set_of(asked(SQL, LAW | {"source": "pvc://more/law"}))
    revision = frozen(one, chosen=entry(**SLOTS), admin=ON)
    (mount,) = [
        one for one in engine_of(revision.leader)["volumeMounts"] if one["mountPath"] == "/adapters/adapters"
    ]
    (volume,) = [one for one in revision.leader["spec"]["volumes"] if one["name"] == mount["name"]]
    assert volume["persistentVolumeClaim"] == {"claimName": "adapters", "readOnly": True}


def test_the_last_adapter_of_a_claim_takes_the_claim_with_it():
    """What nobody names any more may be deleted, and then no further pod that mounts it could start."""
    both = frozen(asked(SQL, LAW), chosen=entry(**SLOTS), admin=ON)
    assert set_of(asked(SQL), [both]) == set_of(asked(SQL)) != both.name


def test_as_many_slots_as_a_list_that_may_grow_could_want():
    def slots(one):
        found = lora_slots(one.spec)
        assert found is not None
        return found.max_loras

    assert slots(asked(SQL)) == MOST_SLOTS
    assert slots(asked(SQL, maxLoaded=3)) == 3
    assert slots(resource(adapters={"items": [SQL]})) == 1


def test_the_adapters_own_token_reaches_the_supervisor_beside_the_models():
    one = resource(
        model={"source": "hf://Qwen/Qwen3-8B", "tokenSecret": {"name": "model"}},
        adapters={"runtimeLoading": True, "tokenSecret": {"name": "adapters"}},
    )
    told = variables(frozen(one, chosen=entry(**SLOTS), admin=ON).leader)
    assert told["HF_TOKEN"]["secretKeyRef"]["name"] == "model"
    assert told["HF_TOKEN_ADAPTERS"]["secretKeyRef"]["name"] == "adapters"


def test_an_engine_of_several_data_ranks_has_one_server_so_that_all_requests_find_what_is_loaded():
    one = asked(SQL)
    several = entry(layout=Layout(data=2), devices=2, **SLOTS)
    assert "--api-server-count" in engine_of(frozen(one, chosen=several, admin=ON).leader)["args"]
    assert "--api-server-count" not in engine_of(frozen(one, chosen=entry(**SLOTS), admin=ON).leader)["args"]
