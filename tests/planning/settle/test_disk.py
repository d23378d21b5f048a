"""The disk that a pod asks for: room for all that is fetched onto volumes that end with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from plimsoll.api.v1alpha1.features import MOST_ADAPTERS
from plimsoll.facts.gpus import GIB
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.models import lookup
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.planning.settle.pod_resources import ADAPTER_BYTES, CACHES, STEP
from tests.planning.asking import QWEN_32B, deployment, inventory, pool

SMALL: Final = "Qwen/Qwen3-0.6B"
DRAFT: Final[dict[str, Any]] = {"speculative": {"method": "draft", "model": SMALL}}
LATER: Final[dict[str, Any]] = {"adapters": {"runtimeLoading": True}}
LORA: Final[dict[str, Any]] = {
    "adapters": {"items": [{"name": "a", "source": "acme/a"}, {"name": "b", "source": "pvc://b"}]}
}
CLAIM: Final[dict[str, Any]] = {"claim": {"name": "kept"}}
READ_ONLY: Final[dict[str, Any]] = {"claim": {"name": "kept", "readOnly": True}}
IMAGE: Final[dict[str, Any]] = {"image": {"reference": "registry.example/model:1"}}
EMPTY: Final[dict[str, Any]] = {"emptyDir": {}}


def known(name: str) -> ModelFacts:
    found = lookup(name)
    assert found is not None
    return found


BIG, LITTLE = known(QWEN_32B).weights.total, known(SMALL).weights.total
ONE, ALL = ADAPTER_BYTES, MOST_ADAPTERS * ADAPTER_BYTES


def disk(model: ModelFacts | None = None, **said: Any) -> int:
    facts = PlanFacts(model=model or known(QWEN_32B), draft=known(SMALL))
    made = plan(deployment(said.pop("source", QWEN_32B), **said), inventory(pool()), facts)
    return made.sets[0].resources.disk_bytes


def room(fetched: int) -> int:
    return -(-(fetched * 11 // 10 + CACHES) // STEP) * STEP


def test_there_is_room_for_the_checkpoint_also_where_it_is_quantized_while_it_is_loaded():
    assert disk() == disk(quantization={"method": "fp8_per_tensor"}) == room(BIG)


def test_there_is_room_for_a_checkpoint_that_is_stored_in_full_precision():
    model = known(QWEN_32B)
    whole = replace(model, weights=replace(model.weights, stored=2 * BIG))
    assert disk(whole) == room(2 * BIG)


@pytest.mark.parametrize(
    ("said", "bytes_"),
    [
        ({**DRAFT}, room(BIG + LITTLE)),
        ({**DRAFT, "storage": {"weights": EMPTY, "cache": CLAIM}}, room(BIG + LITTLE)),
        ({**DRAFT, "storage": {"weights": CLAIM}}, 0),
        ({**DRAFT, "storage": {"weights": READ_ONLY}}, 0),
        ({**DRAFT, "storage": {"weights": IMAGE}}, room(LITTLE)),
        ({**DRAFT, "storage": {"weights": IMAGE, "cache": CLAIM}}, 0),
        ({**DRAFT, "source": "pvc://claim/m"}, room(LITTLE)),
        ({"speculative": {"method": "draft", "model": "pvc://claim/d"}}, room(BIG)),
    ],
)
def test_a_draft_model_is_counted_where_it_is_fetched_onto_the_pod_s_own_volume(said, bytes_):
    assert disk(**said) == bytes_


@pytest.mark.parametrize(
    ("said", "bytes_"),
    [
        (LORA, room(BIG + ONE)),
        ({**LORA, "storage": {"weights": EMPTY, "cache": CLAIM}}, room(BIG + ONE)),
        ({**LORA, "storage": {"weights": READ_ONLY}}, 0),
        (LATER, room(BIG + ALL)),
        ({**LATER, "storage": {"cache": CLAIM}}, room(BIG)),
        ({**LATER, "storage": {"weights": CLAIM}}, 0),
        ({**LATER, "storage": {"weights": CLAIM, "cache": EMPTY}}, room(ALL)),
        ({**LATER, "storage": {"weights": READ_ONLY}}, room(ALL)),
        ({**LATER, "storage": {"weights": IMAGE}}, room(ALL)),
    ],
)
def test_adapters_are_counted_where_they_are_fetched_onto_the_pod_s_own_volume(said, bytes_):
    assert disk(**said) == bytes_


def test_a_list_of_adapters_that_grows_while_pods_run_changes_nothing_of_them():
    items = [{"name": f"a{number}", "source": f"acme/a{number}"} for number in range(40)]
    assert disk(adapters={"runtimeLoading": True, "items": items}) == disk(**LATER)


def test_nothing_more_is_asked_for_where_nothing_is_fetched():
    assert disk(source="pvc://claim/m") == 10 * GIB
    assert disk(storage={"weights": IMAGE}) == disk(storage={"weights": CLAIM, "cache": EMPTY}) == 0
