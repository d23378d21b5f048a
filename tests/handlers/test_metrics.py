"""Where the admin's file says that metrics come from."""

from __future__ import annotations

from pathlib import Path

from plimsoll.api.config import OperatorConfig
from plimsoll.handlers.metrics import _headers, source_of
from plimsoll.reconcile.loop.sources import ByPods, ByPrometheus


def test_without_a_prometheus_the_pods_are_asked() -> None:
    assert isinstance(source_of(OperatorConfig()), ByPods)


def test_a_prometheus_is_asked_with_the_token_that_its_file_holds_now(tmp_path: Path) -> None:
    source = source_of(OperatorConfig(prometheus_url="https://prometheus.monitoring:9090"))
    assert isinstance(source, ByPrometheus)
    source.close()
    file = tmp_path / "token"
    for token in ("first", "renewed"):
        file.write_text(f"{token}\n")
        assert _headers(str(file)) == {"Authorization": f"Bearer {token}"}
    assert _headers(None) == {}
