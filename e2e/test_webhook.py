"""The admission webhook on a real API server: each verdict as a user hears it, and what holds when nobody answers.

The API server calls the operator by address, as both run on this machine; all else is the chart's own, rights included.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from chart import VALUES, objects, rendered
from cluster import Cluster
from cluster.api import Object
from cluster.fleet import read_fleet
from cluster.processes import free_port
from common import ROOT, eventually
from plimsoll import names
from turns.running import RESOURCES, SMALL, Operator

PLACE: Final = "plimsoll-system"
TEAM: Final = "team-a"
HERE: Final = "127.0.0.1"
ON: Final = "--set=webhook.enabled=true"
KINDS: Final = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ServiceAccount", "Secret")
HOOKS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CONFIG: Final = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "OperatorConfig",
    "trust": {
        "serviceAccounts": [{"namespace": TEAM, "names": ["robot"]}],
        "podPatches": {"allow": ["/spec/volumes/*", "/spec/volumes/*/serviceAccountToken*"]},
    },
}


@dataclass(frozen=True, slots=True)
class Hooked:
    cluster: Cluster
    operator: Operator
    configuration: Object
    user: str
    since: int
    account: Path
    args: tuple[str, ...]

    @property
    def hook(self) -> str:
        return f"{HOOKS}/{self.configuration['metadata']['name']}"

    def fails(self, policy: str) -> None:
        """What becomes of a request that nobody answers."""
        self.change(failurePolicy=policy)

    def change(self, **fields: Any) -> None:
        hooks = [{"name": self.configuration["webhooks"][0]["name"], **fields}]
        done = self.cluster.kubectl(
            "patch",
            "validatingwebhookconfiguration",
            self.configuration["metadata"]["name"],
            "-p",
            json.dumps({"webhooks": hooks}),
        )
        assert done.returncode == 0, done.stderr

    def apply(self, name: str, *args: str, **spec: Any) -> tuple[int, str]:
        """As kubectl does it: how it ended, and what it said."""
        done = self.cluster.kubectl("apply", "-f", "-", *args, input=yaml.safe_dump(resource(name, **spec)))
        return done.returncode, done.stderr

    def there(self, name: str) -> bool:
        found = self.cluster.kubectl("-n", TEAM, "get", "llm", name)
        return found.returncode == 0

    def remove(self, name: str) -> None:
        self.cluster.api.delete(f"{RESOURCES}/namespaces/{TEAM}/{names.PLURAL}/{name}")


def resource(name: str, **spec: Any) -> Object:
    """One that is content with a short context, so that nothing else is to be said of it."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {"model": {"source": SMALL}, "workload": {"contextTokens": 8192}, **spec},
    }


def ready(operator: Operator) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HERE}:{operator.port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="module")
def served() -> Iterator[Cluster]:
    with Cluster(audit=True) as running:
        running.install(ROOT / "crds" / "llmdeployments.plimsoll.dev.yaml")
        for name in (PLACE, TEAM):
            running.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        with running.fleet(read_fleet("h100")):
            yield running


@pytest.fixture(scope="module")
def hooked(served: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hooked]:
    """The operator under the chart's rights, and its webhook as the chart declares it, but by address."""
    folder, port = tmp_path_factory.mktemp("operator"), free_port()
    found = objects(rendered(VALUES["default"], "--set=crds.enabled=false", ON, namespace=PLACE))
    (configuration,) = (one for one in found if one["kind"] == "ValidatingWebhookConfiguration")
    (secret,) = (one for one in found if one["kind"] == "Secret")
    (account,) = (one for one in found if one["kind"] == "ServiceAccount")
    configuration["webhooks"][0]["clientConfig"] = {"url": f"https://{HERE}:{port}/validate"}
    kept = [one for one in found if one["kind"] in KINDS]
    done = served.kubectl("apply", "-f", "-", input=yaml.safe_dump_all([*kept, configuration]))
    assert done.returncode == 0, done.stderr
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(CONFIG))
    user = account["metadata"]["name"]
    args = (
        f"--config={file}",
        f"--lease-namespace={PLACE}",
        f"--webhook-host={HERE}",
        f"--webhook-secret={secret['metadata']['name']}",
        f"--webhook-configuration={configuration['metadata']['name']}",
    )
    since = served.audit.mark()
    key = served.kubeconfig_for(PLACE, user)
    with Operator(served, folder, kubeconfig=key, args=(*args, f"--webhook-port={port}")) as operator:
        made = Hooked(
            served, operator, configuration, f"system:serviceaccount:{PLACE}:{user}", since, key, args
        )
        assert eventually(lambda: ready(operator)), operator.tail()
        # The API server hears of the certificate a moment later than it was told.
        assert eventually(lambda: made.apply("early", "--dry-run=server", topology=NO_GPU)[0] != 0), (
            operator.tail()
        )
        made.fails("Fail")
        yield made


NO_GPU: Final = {"gpuProducts": ["H1000"]}


def test_what_fits_is_let_in_without_a_word(hooked: Hooked) -> None:
    assert hooked.apply("plain") == (0, "")
    hooked.remove("plain")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"topology": {"tensor": 1}, "model": {"source": "hf://meta-llama/Llama-3.3-70B-Instruct"}},
         ("no layout fits these devices", "What helps")),
        ({"topology": {"gpuProducts": ["L4"]}}, ("may be used", "What helps: topology.gpuProducts")),
        ({"topology": NO_GPU}, ("topology.gpuProducts", "H1000", "What helps: write H100")),
        ({"engine": {"version": "0.10.0"}}, ("engine.version", "0.10.0", "at least 0.18.0")),
        ({"model": {"source": SMALL, "trustRemoteCode": True}}, ("model.trustRemoteCode (true)", "trust.remoteCode")),
        ({"scheduling": {"serviceAccount": "boss"}}, ("scheduling.serviceAccount", "boss", "trust.serviceAccounts")),
    ],
    ids=["too large", "no such node", "no such GPU", "an engine that is not safe", "a model's own code", "an account"],
)  # fmt: skip
@pytest.mark.parametrize("how", [(), ("--dry-run=server",)], ids=["in earnest", "dry run"])
def test_what_cannot_or_may_not_be_is_refused_with_field_value_and_remedy(
    hooked: Hooked, spec: dict[str, Any], words: tuple[str, ...], how: tuple[str, ...]
) -> None:
    code, said = hooked.apply("wrong", *how, **spec)
    assert code != 0
    assert "llmdeployments.plimsoll.dev" in said
    for word in words:
        assert word in said
    assert not hooked.there("wrong")


def test_what_fits_only_later_is_let_in_with_a_warning(hooked: Hooked) -> None:
    code, said = hooked.apply("many", replicas=900)
    assert code == 0
    assert "Warning: " in said
    assert "replicas" in said
    hooked.remove("many")


NAMING: Final = {
    "model": {"source": SMALL, "tokenSecret": {"name": "hub"}},
    "scheduling": {"serviceAccount": "robot"},
}

MAY_WRITE: Final = {"apiGroups": [names.GROUP], "resources": [names.PLURAL], "verbs": ["*"]}


def test_nobody_hands_to_a_models_pods_what_is_not_theirs(hooked: Hooked) -> None:
    """Alice may write resources; what else she may comes step by step."""
    alice = ("--as=alice", "--as-group=system:authenticated")
    grant(hooked.cluster, "alice", "writes", MAY_WRITE)
    # Rights take a moment to be known.
    assert eventually(lambda: "denied the request" in hooked.apply("hers", *alice, **NAMING)[1])
    code, said = hooked.apply("hers", *alice, **NAMING)
    assert code != 0
    assert "model.tokenSecret.name ('hub'): 'alice' may neither get this Secret" in said
    assert "scheduling.serviceAccount ('robot')" in said

    grant(hooked.cluster, "alice", "reads",
          {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["hub"], "verbs": ["get"]})  # fmt: skip
    assert eventually(lambda: "tokenSecret" not in hooked.apply("hers", *alice, **NAMING)[1])
    code, said = hooked.apply("hers", *alice, **NAMING)
    assert code != 0
    assert "serviceAccount" in said

    # Somebody who may names them; what stands there already is then not hers to answer for.
    assert hooked.apply("hers", **NAMING)[0] == 0
    assert hooked.apply("hers", *alice, **NAMING, replicas=1)[0] == 0
    hooked.remove("hers")

    grant(hooked.cluster, "alice", "runs", {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]})
    assert eventually(lambda: hooked.apply("hers", *alice, **NAMING)[0] == 0)
    hooked.remove("hers")


TOKEN: Final = '{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}'


def test_nobody_has_a_token_mounted_that_they_could_not_ask_for(hooked: Hooked) -> None:
    """By a pod patch that the admin allows; the account is the one that is made for the deployment."""
    bob = ("--as=bob", "--as-group=system:authenticated")
    asked = {
        "model": {"source": SMALL},
        "podPatches": [{"op": "add", "path": "/spec/volumes/-", "value": TOKEN}],
    }
    grant(hooked.cluster, "bob", "bob-writes", MAY_WRITE)
    said = "podPatches[0].value ('his'): 'bob' may neither create a token of this ServiceAccount"
    assert eventually(lambda: said in hooked.apply("his", *bob, **asked)[1])
    grant(hooked.cluster, "bob", "bob-mints",
          {"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["his"], "verbs": ["create"]})  # fmt: skip
    assert eventually(lambda: hooked.apply("his", *bob, **asked)[0] == 0)
    hooked.remove("his")


def grant(cluster: Cluster, user: str, name: str, rule: dict[str, Any]) -> None:
    group = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{group}/v1",
        "kind": "Role",
        "metadata": {"name": name, "namespace": TEAM},
        "rules": [rule],
    }
    binding = {
        **role,
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    del binding["rules"]
    done = cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all([role, binding]))
    assert done.returncode == 0, done.stderr


def test_who_only_waits_for_the_lease_is_ready_and_answers_too(hooked: Hooked, tmp_path: Path) -> None:
    port = free_port()
    args = (*hooked.args, f"--webhook-port={port}")
    with Operator(hooked.cluster, tmp_path, kubeconfig=hooked.account, args=args) as standby:
        assert eventually(lambda: ready(standby)), standby.tail()
        assert eventually(lambda: hooked.operator.metric("plimsoll_leads") == 1)
        assert standby.metric("plimsoll_leads") == 0
        asked = hooked.operator.metric("plimsoll_admission_reviews_total")
        first = hooked.configuration["webhooks"][0]["clientConfig"]["url"]
        hooked.change(clientConfig={"url": f"https://{HERE}:{port}/validate"})
        # Until the API server has heard where to ask, it asks the first one.
        assert eventually(
            lambda: (
                hooked.apply("wrong", topology=NO_GPU)[0] != 0
                and standby.metric("plimsoll_admission_reviews_total") > 0
            )
        )
        hooked.change(clientConfig={"url": first})
        assert eventually(
            lambda: (
                hooked.apply("wrong", topology=NO_GPU)[0] != 0
                and hooked.operator.metric("plimsoll_admission_reviews_total") > asked + 1
            )
        )
        assert standby.stop() == 0, standby.tail()


def test_what_is_there_can_be_labelled_scaled_and_ended_whatever_is_wrong_with_it(hooked: Hooked) -> None:
    hooked.fails("Ignore")
    hooked.operator.stop()
    # Nobody answers, so it is let in, once the API server has heard that it may be; and where that must not be, it is not.
    assert eventually(lambda: hooked.apply("old", topology=NO_GPU)[0] == 0)
    hooked.fails("Fail")
    assert eventually(lambda: hooked.apply("older", topology=NO_GPU)[0] != 0)
    kubectl = hooked.cluster.kubectl
    assert kubectl("-n", TEAM, "label", "llm", "old", "team=a").returncode == 0
    assert kubectl("-n", TEAM, "scale", "llm", "old", "--replicas=0").returncode == 0

    hooked.operator.start()
    assert eventually(lambda: ready(hooked.operator)), hooked.operator.tail()
    # An edit is not held responsible for what was wrong before it, but for what it makes wrong.
    code, said = hooked.apply("old", topology=NO_GPU, replicas=0, paused=True)
    assert code == 0
    assert "H1000" in said
    code, said = hooked.apply("old", topology=NO_GPU, engine={"version": "0.10.0"})
    assert code != 0
    refused = said.partition("denied the request")[2]
    assert "0.10.0" in refused
    assert "H1000" not in refused
    # It is told in conditions too.
    path = f"{RESOURCES}/namespaces/{TEAM}/{names.PLURAL}/old"
    assert eventually(lambda: "H1000" in json.dumps(hooked.cluster.api.get(path).get("status") or {}))
    hooked.remove("old")
    assert eventually(lambda: not hooked.there("old"))


def test_it_may_be_turned_on_while_one_without_it_acts(hooked: Hooked, tmp_path: Path) -> None:
    """As an upgrade does it: who acts knows no webhook, and leaves only once the new one is ready."""
    hooked.operator.stop()
    secret = next(one for one in hooked.args if one.startswith("--webhook-secret=")).partition("=")[2]
    emptied = hooked.cluster.kubectl(
        "-n", PLACE, "patch", "secret", secret, "--type=json", '-p=[{"op": "remove", "path": "/data"}]'
    )
    assert emptied.returncode == 0, emptied.stderr
    without = tuple(one for one in hooked.args if not one.startswith("--webhook"))
    with Operator(hooked.cluster, tmp_path, kubeconfig=hooked.account, args=without) as old:
        assert eventually(lambda: old.metric("plimsoll_leads") == 1), old.tail()
        hooked.operator.start()
        assert eventually(lambda: ready(hooked.operator)), hooked.operator.tail()
        assert eventually(lambda: "denied the request" in hooked.apply("wrong", topology=NO_GPU)[1])
        assert hooked.operator.metric("plimsoll_leads") == 0
        assert old.metric("plimsoll_leads") == 1


def test_it_has_the_rights_that_it_needs_and_no_other(hooked: Hooked) -> None:
    # Who may not read what is named makes the operator ask for that person's rights, whatever ran here before.
    bob = ("--as=bob", "--as-group=system:authenticated")
    grant(hooked.cluster, "bob", "applies", MAY_WRITE)
    assert eventually(lambda: "denied the request" in hooked.apply("his", *bob, **NAMING)[1])
    refused = hooked.cluster.audit.entries(user=hooked.user, codes={401, 403}, since=hooked.since)
    assert [(one.call.verb, one.call.resource, one.call.namespace) for one in refused] == []
    used = {
        (one.call.resource, one.call.verb)
        for one in hooked.cluster.audit.entries(user=hooked.user, since=hooked.since)
        if one.code < 400
    }
    assert used >= {
        ("secrets", "get"),
        ("secrets", "update"),
        ("validatingwebhookconfigurations", "get"),
        ("validatingwebhookconfigurations", "patch"),
        ("localsubjectaccessreviews", "create"),
    }
