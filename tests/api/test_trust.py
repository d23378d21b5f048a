"""What the admin's lists let pass: each list with what it allows and what it refuses."""

from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.api.named import accounts_of, secrets_of, tokens_of
from plimsoll.api.trust import DENIED_ENV, untrusted
from plimsoll.api.v1alpha1 import LLMDeploymentSpec

MODEL = {"source": "Qwen/Qwen3-8B"}
REMOTE = {**MODEL, "trustRemoteCode": True}


def refused(
    spec: dict[str, Any], trust: dict[str, Any], namespace: str = "team-a", **config: Any
) -> list[str]:
    problems = untrusted(
        LLMDeploymentSpec.model_validate({"model": MODEL, **spec}),
        namespace,
        OperatorConfig.model_validate({"trust": trust, **config}),
    )
    assert all(problem.message for problem in problems)
    return [problem.field.removeprefix("spec.") for problem in problems]


def patch(path: str, value: str | None = '"x"', op: str = "add") -> dict[str, Any]:
    return {"podPatches": [{"op": op, "path": path, **({} if value is None else {"value": value})}]}


def args(*words: str) -> dict[str, Any]:
    return {"engine": {"extraArgs": list(words)}}


def env(name: str) -> dict[str, Any]:
    return {"engine": {"env": [{"name": name, "value": "x"}]}}


ANY_PATCH: dict[str, Any] = {"podPatches": {}}


@pytest.mark.parametrize(
    ("spec", "trust", "fields"),
    [
        pytest.param({}, {}, [], id="a plain deployment needs no trust"),
        pytest.param({"model": REMOTE}, {}, ["model.trustRemoteCode"], id="remote code of nobody"),
        pytest.param({"model": REMOTE}, {"remoteCode": [{"source": "hf://Qwen/*"}]}, [], id="remote code of an organisation"),
        pytest.param({"model": REMOTE}, {"remoteCode": [{"source": "hf://Qwen/Qwen3-8B", "revision": "abc"}]}, ["model.revision"], id="remote code at a commit, none given"),
        pytest.param({"model": {**REMOTE, "revision": "abc"}}, {"remoteCode": [{"source": "hf://Qwen/*", "revision": "abc"}]}, [], id="remote code at that commit"),
        pytest.param({"model": REMOTE}, {"remoteCode": [{"source": "s3://Qwen/*"}]}, ["model.trustRemoteCode"], id="the same path in another store"),
        pytest.param({"engine": {"image": "evil.example.com/vllm"}}, {"images": ["good.example.com/*"]}, ["engine.image"], id="an image from elsewhere"),
        pytest.param({"engine": {"image": "good.example.com/vllm"}}, {"images": ["good.example.com/*"]}, [], id="an image from the right place"),
        pytest.param({"engine": {"version": "0.17.3"}}, {}, ["engine.version"], id="an unsafe version"),
        pytest.param({"engine": {"version": "0.18"}}, {}, [], id="the least safe version"),
        pytest.param({"engine": {"version": "0.17.3"}}, {"leastEngineVersion": "0.10"}, [], id="an unsafe version at the admin's word"),
        pytest.param({"engine": {"image": "reg.example/vllm/vllm-openai:v0.10.2-x86"}}, {"images": ["*"]}, ["engine.image"], id="an unsafe version by the image's tag"),
        pytest.param({"engine": {"image": "reg.example/vllm:0.17", "version": "0.33.0"}}, {"images": ["*"]}, ["engine.image"], id="an image's tag that the version contradicts"),
        pytest.param({"engine": {"image": "reg.example/vllm-openai:v0.33.0"}}, {"images": ["*"]}, [], id="a safe version by the image's tag"),
        pytest.param({"engine": {"image": "reg.example/ours:1.2.3"}}, {"images": ["*"]}, [], id="a tag that is no engine's"),
        pytest.param(args("--seed", "1", "-1"), {}, [], id="arguments without lists"),
        pytest.param(args("--seed", "1"), {"extraArgs": {"allow": ["--generation-*"]}}, ["engine.extraArgs[0]"], id="an argument not on the list"),
        pytest.param(args("--generation-config=vllm"), {"extraArgs": {"allow": ["--generation-*"]}}, [], id="an argument on the list"),
        pytest.param(args("--load_format=dummy"), {"extraArgs": {"deny": ["--load-format"]}}, ["engine.extraArgs[0]"], id="a denied argument with underscores"),
        pytest.param(args("--compilation-config.mode", "3"), {"extraArgs": {"deny": ["--compilation-config"]}}, ["engine.extraArgs[0]"], id="a denied argument by its inner key"),
        pytest.param(args("--trust-remote-code"), {"extraArgs": {"allow": ["*"]}}, ["engine.extraArgs[0]"], id="remote code through the back door"),
        pytest.param(args("--trust-remote"), {}, ["engine.extraArgs[0]"], id="remote code by a beginning"),
        pytest.param(args("--load-f", "dummy"), {"extraArgs": {"deny": ["--load-format"]}}, ["engine.extraArgs[0]"], id="a denied argument by a beginning"),
        pytest.param(args("-q", "awq"), {"extraArgs": {"deny": ["--quantization"]}}, ["engine.extraArgs[0]"], id="a short flag beside lists"),
        pytest.param(args("-q", "awq"), {}, [], id="a short flag without lists"),
        pytest.param(env("VLLM_LOGGING_LEVEL"), {}, [], id="a variable without lists"),
        pytest.param(env("FOO"), {"env": {"deny": ["F*"]}}, ["engine.env[0].name"], id="a denied variable"),
        pytest.param(env("ld_preload"), {"env": {"allow": ["*"]}}, ["engine.env[0].name"], id="a variable that loads code"),
        pytest.param(env("https_proxy"), {"env": {"allow": ["*"]}}, ["engine.env[0].name"], id="a variable that redirects traffic"),
        pytest.param(patch("/spec/hostname"), {}, ["podPatches[0].path"], id="a patch without lists"),
        pytest.param(patch("/spec/hostname"), ANY_PATCH, [], id="a patch with empty lists"),
        pytest.param(patch("/spec/hostname"), {"podPatches": {"allow": ["/metadata/*"]}}, ["podPatches[0].path"], id="a patch elsewhere"),
        pytest.param(patch("/spec/hostNetwork", "true"), ANY_PATCH, ["podPatches[0].path"], id="the host's network"),
        pytest.param(patch("/spec/hostNetwork", "true"), {"podPatches": {"allow": ["/spec/hostNetwork"]}}, [], id="the host's network at the admin's word"),
        pytest.param(patch("/spec/hostNetwork", "true"), {"podPatches": {"allow": ["/spec/*"]}}, ["podPatches[0].path"], id="the host's network by a wide pattern"),
        pytest.param(patch("/spec/containers/0", '{"securityContext": {"privileged": true}}', "replace"), ANY_PATCH, ["podPatches[0].path"], id="privileges inside a value"),
        pytest.param(patch("/spec/containers/-", '{"name": "x", "ports": [{"hostPort": 1}]}'), ANY_PATCH, ["podPatches[0].path"], id="a host's port in a list"),
        pytest.param(patch("/spec/securityContext", None, "remove"), ANY_PATCH, ["podPatches[0].path"], id="a protection removed"),
        pytest.param(patch("/metadata/labels/example.com~1team"), {"podPatches": {"allow": ["/metadata/labels/example.com/*"]}}, [], id="an escaped pointer"),
        pytest.param({"model": {**MODEL, "tokenSecret": {"name": "hub"}}}, {}, [], id="a secret without a list"),
        pytest.param({"model": {**MODEL, "tokenSecret": {"name": "hub"}}}, {"secrets": [{"namespace": "*", "names": ["hub"]}]}, [], id="a secret on the list"),
        pytest.param({"model": {**MODEL, "tokenSecret": {"name": "hub"}}}, {"secrets": [{"namespace": "team-b", "names": ["hub"]}]}, ["model.tokenSecret.name"], id="a secret of another namespace"),
        pytest.param({"scheduling": {"serviceAccount": "chat"}}, {}, ["scheduling.serviceAccount"], id="a service account of nobody"),
        pytest.param({"scheduling": {"serviceAccount": "chat"}}, {"serviceAccounts": [{"namespace": "team-*", "names": ["ch*"]}]}, [], id="a service account on the list"),
    ],
)  # fmt: skip
def test_the_lists_decide(spec: dict[str, Any], trust: dict[str, Any], fields: list[str]) -> None:
    assert refused(spec, trust) == fields


def test_a_known_flag_is_not_taken_for_the_beginning_of_another() -> None:
    spec = LLMDeploymentSpec.model_validate({"model": MODEL, **args("--tokenizer", "x")})
    config = OperatorConfig.model_validate({"trust": {"extraArgs": {"deny": ["--tokenizer-mode"]}}})
    assert not untrusted(spec, "a", config, flags={"--tokenizer", "--tokenizer-mode"})
    assert untrusted(spec, "a", config)


def test_a_version_outside_the_admins_is_refused() -> None:
    engines = {"versions": [{"version": "0.33.0"}]}
    assert refused({"engine": {"version": "0.20.2"}}, {}, engines=engines) == ["engine.version"]
    assert refused({"engine": {"version": "0.33.0"}}, {}, engines=engines) == []


@pytest.mark.parametrize("pattern", DENIED_ENV)
def test_some_variables_never_pass(pattern: str) -> None:
    assert refused(env(pattern.replace("*", "X")), {"env": {"allow": ["*"]}}) == ["engine.env[0].name"]


def test_every_secret_of_a_deployment_is_known() -> None:
    secret = {"name": "a"}
    spec = LLMDeploymentSpec.model_validate({
        "model": {**MODEL, "tokenSecret": secret},
        "engine": {"imagePullSecrets": ["a"], "env": [{"name": "X", "secret": secret}]},
        "adapters": {"runtimeLoading": True, "tokenSecret": secret},
        "networking": {
            "apiKeySecret": secret, "tlsSecret": "a", "ingress": {"hosts": ["x.example.com"], "tlsSecret": "a"}
        },
    })  # fmt: skip
    assert len(secrets_of(spec)) == 7


def test_an_unsafe_default_of_the_admins_is_told_as_theirs():
    admin = OperatorConfig.model_validate({"engines": {"defaultVersion": "0.10.0"}})
    (problem,) = untrusted(LLMDeploymentSpec.model_validate({"model": MODEL}), "team-a", admin)
    assert "the admin's engines.defaultVersion must be at least 0.18.0" in str(problem)
    newer = {"model": MODEL, "engine": {"version": "0.33.0"}}
    assert untrusted(LLMDeploymentSpec.model_validate(newer), "team-a", admin) == ()


DRIVERS: dict[str, Any] = {"podPatches": {"allow": ["*", "/spec/volumes/*/csi*"]}}
LISTED: dict[str, Any] = {**DRIVERS, "secrets": [{"namespace": "*", "names": ["mine"]}]}
BRINGS = [
    pytest.param("/spec/containers/0/env/-", '{"name": "X", "valueFrom": {"secretKeyRef": {"name": "%s", "key": "k"}}}', id="a variable"),
    pytest.param("/spec/containers/0/env/0/valueFrom/secretKeyRef/name", '"%s"', id="a variable's secret alone"),
    pytest.param("/spec/containers/0/envFrom", '[{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "%s"}}]', id="all variables of a secret"),
    pytest.param("/spec/containers/-", '{"name": "x", "envFrom": [{"secretRef": {"name": "%s"}}]}', id="a container more"),
    pytest.param("/spec/containers", '[{"name": "x", "envFrom": [{"secretRef": {"name": "%s"}}]}]', id="all containers"),
    pytest.param("/spec/volumes/-", '{"name": "v", "secret": {"secretName": "%s"}}', id="a volume"),
    pytest.param("/spec/volumes/0/secret/secretName", '"%s"', id="a volume's secret alone"),
    pytest.param("/spec/volumes/-", '{"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "%s"}}]}}', id="a projected volume"),
    pytest.param("/spec/volumes/-", '{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "%s"}}}', id="a driver's volume"),
    pytest.param("/spec/volumes/-", '{"name": "v", "rbd": {"secretRef": {"name": "%s"}}}', id="a volume of the network"),
    pytest.param("/spec/volumes/-", '{"name": "v", "azureFile": {"shareName": "s", "secretName": "%s"}}', id="a share"),
    pytest.param("/spec/imagePullSecrets", '[{"name": "%s"}]', id="pull secrets"),
    pytest.param("/spec/imagePullSecrets/-", '{"name": "%s"}', id="a pull secret"),
    pytest.param("/spec/imagePullSecrets/0/name", '"%s"', id="a pull secret's name"),
]  # fmt: skip


@pytest.mark.parametrize("op", ["add", "replace"])
@pytest.mark.parametrize(("path", "value"), BRINGS)
def test_a_secret_that_a_patch_brings_is_judged_as_any_other(path: str, value: str, op: str) -> None:
    theirs, mine = patch(path, value % "theirs", op), patch(path, value % "mine", op)
    spec = LLMDeploymentSpec.model_validate({"model": MODEL, **theirs})
    assert secrets_of(spec) == (("spec.podPatches[0].value", "theirs"),)
    assert refused(theirs, LISTED) == ["podPatches[0].value"]
    assert refused(mine, LISTED) == []
    assert refused(theirs, DRIVERS) == []


@pytest.mark.parametrize(
    "said",
    [
        patch("/spec/containers/0/env/-", '{"name": "secretName", "value": "theirs"}'),
        patch("/spec/containers/0/envFrom", '[{"configMapRef": {"name": "theirs"}}]'),
        patch("/spec/volumes/-", '{"name": "secret", "configMap": {"name": "theirs"}}'),
        patch("/spec/nodeSelector/secretName", '"theirs"'),
        patch("/metadata/annotations/secretName", '"theirs"'),
        patch("/spec/volumes/0/secret/secretName", '"theirs"', "test"),
        patch("/spec/volumes/0/secret/secretName", None, "remove"),
    ],
)
def test_a_patch_that_brings_no_secret_is_not_asked_for_one(said: dict[str, Any]) -> None:
    assert refused(said, LISTED) == []


TOKEN = '{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}'
IDENTITIES = [
    pytest.param(patch("/spec/volumes/-", TOKEN), "serviceAccountToken", True, id="a projected token"),
    pytest.param(patch("/spec/volumes", f"[{TOKEN}]"), "serviceAccountToken", True, id="all volumes, one with a token"),
    pytest.param(patch("/spec/volumes/0/projected/sources/-", '{"serviceAccountToken": {"path": "t"}}'), "serviceAccountToken", True, id="a source of a volume"),
    pytest.param(patch("/spec/volumes/0/projected/sources/0/serviceAccountToken/audience", '"vault"', "replace"), "serviceAccountToken", True, id="whom a token is for"),
    pytest.param(patch("/spec/automountServiceAccountToken", "true"), "automountServiceAccountToken", True, id="the token that the kubelet mounts"),
    pytest.param(patch("/spec/automountServiceAccountToken", None, "remove"), "automountServiceAccountToken", True, id="what keeps the kubelet from it, taken away"),
    pytest.param(patch("/spec/automountServiceAccountToken", "false", "replace"), "automountServiceAccountToken", False, id="what keeps the kubelet from it"),
    pytest.param(patch("/spec/volumes/-", '{"name": "v", "projected": {"sources": [{"podCertificate": {"keyType": "ED25519"}}]}}'), "podCertificate", False, id="a certificate"),
    pytest.param(patch("/spec/volumes/-", '{"name": "v", "csi": {"driver": "secrets-store.csi.k8s.io"}}'), "csi", False, id="a store's secrets"),
    pytest.param(patch("/spec/volumes/-", '{"name": "v", "flexVolume": {"driver": "x/y"}}'), "flexVolume", False, id="a program of the node"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "field", "token"), IDENTITIES)
def test_an_identity_that_a_patch_brings_passes_only_where_the_admin_names_it(
    said: dict[str, Any], field: str, token: bool
) -> None:
    assert refused(said, ANY_PATCH) == ["podPatches[0].path"]
    assert refused(said, {"podPatches": {"allow": ["*"]}}) == ["podPatches[0].path"]
    assert refused(said, {"podPatches": {"allow": ["*", f"*/{field}*"]}}) == []
    spec = LLMDeploymentSpec.model_validate({"model": MODEL, **said})
    assert tokens_of(spec) == (("spec.podPatches[0].value",) if token else ())


@pytest.mark.parametrize("field", ["serviceAccountName", "serviceAccount"])
def test_an_account_that_a_patch_names_is_judged_as_any_other(field: str) -> None:
    said = patch(f"/spec/{field}", '"robot"', "replace")
    assert accounts_of(LLMDeploymentSpec.model_validate({"model": MODEL, **said})) == (
        ("spec.podPatches[0].value", "robot"),
    )
    named: dict[str, Any] = {"podPatches": {"allow": [f"/spec/{field}"]}}
    assert refused(said, named) == ["podPatches[0].value"]
    listed = {**named, "serviceAccounts": [{"namespace": "team-a", "names": ["robot"]}]}
    assert refused(said, listed) == []
