"""Models that a turn needs to know: who is asked, with whose Secret, and what a pod that cannot be made leaves to say."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plimsoll import names
from plimsoll.facts.models import lookup
from plimsoll.facts.serving import PodSeen, Stage
from plimsoll.kube.facts_pods import FactsPod
from plimsoll.objects import Manifest
from plimsoll.reconcile import reading_models
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.models import Found, Missing
from plimsoll.reconcile.reading_models import clear, read_models
from plimsoll.reconcile.told_models import ModelReadings
from plimsoll.reconcile.world import World
from plimsoll_runtime.model import Model, told
from tests.render.building import config, resource
from tests.runtime.test_model import DENSE

KEY = "team/chat"
SECRET = {"name": "hub", "key": "token"}
MISSING = Missing("nobody knows it", elsewhere=True)
ANSWER = told(Model(DENSE, {}))


class Doors:
    """Pods as they are in a namespace."""

    def __init__(self) -> None:
        self.pods: dict[str, FactsPod] = {}
        self.made: list[Manifest] = []

    def of(self, _: str) -> tuple[FactsPod, ...]:
        return tuple(self.pods.values())

    async def make(self, wanted: Manifest) -> None:
        self.made.append(wanted)
        about = wanted.body["metadata"]
        self.pods[about["name"]] = FactsPod(
            seen=PodSeen(name=about["name"], uid="u", stage=Stage.LOADING),
            ticket=about["annotations"][names.ANNOTATION_TICKET],
            attempt=int(about["annotations"][names.ANNOTATION_ATTEMPT]),
            owner=about["ownerReferences"][0]["uid"],
        )

    async def remove(self, _: str, pod: FactsPod) -> None:
        del self.pods[pod.seen.name]

    def tell(self, text: str) -> None:
        """All that run end well."""
        self.pods = {
            name: replace(pod, told=text, ended=1.0) if pod.told is None else pod
            for name, pod in self.pods.items()
        }


class Around:
    """As much of a world as has models read."""

    def __init__(self, *missing: str) -> None:
        self.missing = missing or ("model.source",)
        self.facts_pods = Doors()
        self.config = config()
        self.models = SimpleNamespace(look=self._look)
        self.there = Kept()

    async def _look(self, _: object) -> dict[str, Found]:
        return dict.fromkeys(self.missing, MISSING)

    def now(self) -> float:
        return 100.0

    async def kept(self, _: str) -> Kept:
        return self.there

    def read(self, deployment: Any) -> ModelReadings:
        return asyncio.run(read_models(cast(World, self), KEY, deployment, self.there.models))

    def clear(self, read: ModelReadings) -> None:
        asyncio.run(clear(cast(World, self), KEY, read))


@pytest.mark.parametrize(
    ("source", "draft"),
    [("hf://acme/secret", "modelscope://acme/small"), ("modelscope://acme/secret", "hf://acme/small")],
)
def test_nobody_reads_what_no_pod_could_serve_and_the_reason_is_said(source: str, draft: str) -> None:
    around = Around("model.source", "speculative.model")
    wish = {"method": "draft", "model": draft, "tokens": 3}
    model = {"source": source, "tokenSecret": SECRET}
    read = around.read(resource(source, model=model, speculative=wish))
    assert around.facts_pods.made == []
    assert draft in (read.facts.problem or "")
    assert "one hub" in (read.facts.problem or "")


def test_where_the_operator_knows_all_models_nobody_works_out_what_a_pod_could_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every turn comes by here, and nearly every model is known."""

    def never(*_: object) -> dict[str, Any]:
        raise AssertionError("what a pod could read was worked out")

    monkeypatch.setattr(reading_models, "_readable", never)
    around = Around()
    chat = resource()
    facts = lookup(chat.spec.model.source)
    around.models = SimpleNamespace(look=_always({"model.source": facts}))
    assert around.read(chat).facts.model == facts


def _always(answer: object) -> Any:
    async def look(_: object) -> object:
        return answer

    return look


def test_an_answer_stays_in_its_pod_until_that_very_answer_is_kept() -> None:
    around = Around()
    chat = resource("pvc://models/tiny")
    around.read(chat)
    around.facts_pods.tell(ANSWER)
    first = around.read(chat)
    around.clear(first)
    assert len(around.facts_pods.pods) == 1, "nothing is kept yet"
    around.there = Kept(models=first.kept)
    around.clear(first)
    assert around.facts_pods.pods == {}
    asked = chat.metadata.model_copy(update={"annotations": {names.ANNOTATION_REPLAN: "2"}})
    chat = chat.model_copy(update={"metadata": asked})
    around.read(chat)
    around.facts_pods.tell(told(Model({**DENSE, "hidden_size": 1024}, {})))
    second = around.read(chat)
    around.clear(second)
    assert len(around.facts_pods.pods) == 1, "what is kept is the answer before"
    around.there = Kept(models=second.kept)
    around.clear(second)
    assert around.facts_pods.pods == {}
    assert around.read(chat).wanted == ()
