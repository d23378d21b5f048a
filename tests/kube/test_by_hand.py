"""Which cluster a command reaches: that of a kubeconfig, and inside a pod without one the pod's own, as kubectl does."""

from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import Configuration
from kubernetes.config import ConfigException

from plimsoll.kube import by_hand

NOWHERE = "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION"


def no_pod(_configuration: Any) -> None:
    raise ConfigException("Service host/port is not set.")


def a_pod(configuration: Configuration) -> None:
    configuration.host = "https://10.0.0.1:443"


def test_inside_a_pod_without_a_kubeconfig_its_own_account_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NOWHERE, str(tmp_path / "none"))
    monkeypatch.setattr(by_hand, "load_incluster_config", a_pod)
    assert by_hand.client_of(None).configuration.host == "https://10.0.0.1:443"


def test_a_context_that_is_named_is_never_taken_for_the_pods_own_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NOWHERE, str(tmp_path / "none"))
    monkeypatch.setattr(by_hand, "load_incluster_config", a_pod)
    with pytest.raises(by_hand.ContextUnknown, match="there is no kubeconfig"):
        by_hand.client_of("prod")


def test_with_neither_it_is_said_where_a_kubeconfig_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NOWHERE, str(tmp_path / "none"))
    monkeypatch.setattr(by_hand, "load_incluster_config", no_pod)
    with pytest.raises(by_hand.ContextUnknown, match="there is no kubeconfig at"):
        by_hand.client_of(None)


def test_a_kubeconfig_that_is_there_and_broken_is_not_passed_over_for_the_pods_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("apiVersion: v1\nkind: Config\n")
    monkeypatch.setattr(NOWHERE, str(tmp_path / "config"))
    monkeypatch.setattr(by_hand, "load_incluster_config", a_pod)
    with pytest.raises(by_hand.ContextUnknown, match="check KUBECONFIG"):
        by_hand.client_of(None)


def test_a_pod_whose_user_has_no_home_is_as_one_without_a_kubeconfig(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a user that no file knows Python cannot tell the home."""
    monkeypatch.setattr(NOWHERE, "~nobody-knows/.kube/config")
    monkeypatch.setattr(by_hand, "load_incluster_config", a_pod)
    assert by_hand.client_of(None).configuration.host == "https://10.0.0.1:443"


def test_a_variable_that_names_no_file_is_as_no_kubeconfig(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NOWHERE, "")
    monkeypatch.setattr(by_hand, "load_incluster_config", a_pod)
    assert by_hand.client_of(None).configuration.host == "https://10.0.0.1:443"
