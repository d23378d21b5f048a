"""Where the admin's file says that metrics come from."""

from __future__ import annotations

import asyncio
from email.message import Message
from pathlib import Path

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.engines import engine_facts
from plimsoll.handlers.control import _token, source_of
from plimsoll.prometheus.vocabulary import vocabulary
from plimsoll.reconcile.loop.sources import ByPods, ByPrometheus
from tests.prometheus.serving import body, server


def test_without_a_prometheus_the_pods_are_asked() -> None:
    assert isinstance(source_of(OperatorConfig()), ByPods)


def test_a_prometheus_is_asked_with_the_token_that_its_file_holds_now(tmp_path: Path) -> None:
    source = source_of(OperatorConfig(prometheus_url="https://prometheus.monitoring:9090"))
    assert isinstance(source, ByPrometheus)
    source.close()
    file = tmp_path / "token"
    for token in ("first", "renewed"):
        file.write_text(f"{token}\n")
        assert _token(str(file)) == {"Authorization": f"Bearer {token}"}
    assert _token(None) == {}


def test_of_several_clusters_behind_one_address_this_one_alone_is_asked_for_as_the_tenant_that_is_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "token").write_text("secret")
    control = {
        "prometheusMatchLabels": {"cluster": "eu-1"},
        "prometheusHeaders": {"X-Scope-OrgID": "team"},
        "prometheusTokenFile": str(tmp_path / "token"),
    }
    asked: list[str] = []
    sent: list[tuple[str | None, ...]] = []

    def answer(query: str) -> tuple[int, bytes]:
        asked.append(query)
        return body([])

    def headed(headers: Message) -> None:
        sent.append(tuple(headers[name] for name in ("X-Scope-OrgID", "Authorization", "Content-Type")))

    with server(answer, heard=headed) as url:
        source = source_of(OperatorConfig.model_validate({"prometheusUrl": url, "control": control}))
        assert isinstance(source, ByPrometheus)
        source._metrics.speaks(vocabulary([engine_facts("vllm", "0.33.0").metrics]))
        _, problem = asyncio.run(source._metrics.look(0.0))
        source.close()
    assert problem is None
    assert len(asked) == 7
    assert [query for query in asked if query.count('cluster="eu-1"}') != query.count("{__name__")] == []
    assert set(sent) == {("team", "Bearer secret", "application/x-www-form-urlencoded")}
