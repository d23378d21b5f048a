"""The admin's config: a complete example reads, each rule refuses its case, an empty file trusts nobody."""

import json
from typing import Any

import pytest

from plimsoll.api.loading import load_config
from plimsoll.api.problems import SpecError

EXAMPLE = """
apiVersion: plimsoll.dev/v1alpha1
kind: OperatorConfig
nodeClasses:
  - name: h100
    gpuProduct: NVIDIA-H100-80GB-HBM3
    gpusPerNode: 8
    maxNodes: 16
    pricePerHour: "24.5"
    labels: {node.example.com/class: h100}
    taints: [{key: nvidia.com/gpu, value: present}]
    interconnect: nvlink
    rdma: true
  - {name: cpu, cpu: 32, memory: 128Gi, maxNodes: 4, provisionSeconds: 90}
prices:
  currency: EUR
  gpuHour: [{product: H200, perHour: "3.10"}]
  cpuCoreHour: "0.04"
registry: {mirror: registry.example.com/mirror, pullSecrets: [registry]}
network: {httpsProxy: http://proxy.example.com:3128, noProxy: [.svc, 10.0.0.0/8], hubEndpoint: https://hub.example.com}
trust:
  remoteCode: [{source: hf://deepseek-ai/*, revision: abc123}]
  images: [registry.example.com/*]
  extraArgs: {allow: [--generation-config], deny: [--load-format]}
  env: {deny: [LD_*]}
  podPatches: {allow: [/metadata/*]}
  serviceAccounts: [{namespace: team-a, names: [chat]}]
budgets:
  - {namespace: team-a, gpus: 32, priority: 10}
  - {namespace: "*", gpus: 8, gpusByProduct: [{product: H200, gpus: 4}]}
restarts: {retunesPerDay: 1}
storage: {weights: {claimTemplate: {storageClass: fast}}}
engines: {defaultVersion: 0.33.0, versions: [{version: 0.33.0, cpuImage: registry.example.com/vllm-cpu}], upgrade: operator}
presets: [{name: ours, description: Ours., spec: {engine: {maxSequences: 32}}}]
defaults: [{namespace: team-a, spec: {workload: {preset: ours}}}]
"""
HEAD = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "OperatorConfig"}


def test_a_complete_example_is_read() -> None:
    config = load_config(EXAMPLE)
    assert config.node_classes[0].gpus_per_node == 8
    assert config.node_classes[1].cpu == "32"
    assert config.restarts.retunes_per_day == 1
    assert config.restarts.restarts_per_day is None
    assert config.defaults[0].spec.workload.preset == "ours"
    assert config.engines.upgrade == "operator"


@pytest.mark.parametrize(
    "restarts", ["canarySeconds: 3600", "canaryLimitSeconds: 600", "canarySeconds: 9, canaryLimitSeconds: 9"]
)
def test_a_canary_that_would_be_given_up_before_it_can_be_judged_is_refused(restarts: str) -> None:
    with pytest.raises(SpecError, match=r"restarts\.canaryLimitSeconds: .* more than canarySeconds"):
        load_config(EXAMPLE.replace("retunesPerDay: 1", restarts))


def test_what_was_read_writes_back_the_same() -> None:
    config = load_config(EXAMPLE)
    assert type(config).model_validate(config.to_dict()) == config


def test_an_empty_config_trusts_nobody() -> None:
    trust = load_config("").trust
    assert trust.remote_code == ()
    assert trust.images == ()
    assert trust.pod_patches is None
    assert trust.service_accounts == ()


@pytest.mark.parametrize(
    "text", ["prices: {currency: EUR}", "{apiVersion: , kind: null, prices: {currency: EUR}}"]
)
def test_a_file_without_its_head_is_read_as_one_with_it(text: str) -> None:
    assert load_config(text) == load_config(f"{json.dumps(HEAD)[:-1]}, prices: {{currency: EUR}}}}")
    assert load_config("{}") == load_config("")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: OperatorConfig", "apiVersion: must be plimsoll.dev/v1alpha1 (found '')"),
        ("apiVersion: plimsoll.dev/v1alpha1", "kind: must be OperatorConfig (found '')"),
        ("apiVersion: plimsoll.dev/v2\nkind: OperatorConfig", "apiVersion: must be plimsoll.dev/v1alpha1"),
        ("spec: {model: {source: a/b}}", "spec: is no field of this group"),
        ("[1]", "must be an object of kind OperatorConfig"),
    ],
)
def test_half_a_head_or_another_file_is_no_config(text: str, told: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_config(text)
    assert str(caught.value.problems[0]).startswith(told)


def test_a_field_of_an_earlier_release_that_never_meant_anything_keeps_no_operator_from_starting() -> None:
    written = EXAMPLE.replace("maxNodes: 4,", "maxNodes: 4, spot: true, ephemeralStorage: 1Ti,")
    assert written != EXAMPLE
    assert load_config(written) == load_config(EXAMPLE)


NODES = {"name": "a", "maxNodes": 1}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        pytest.param({"nodeClasses": [{**NODES, "gpuProduct": "H100"}]}, "nodeClasses[0].gpusPerNode", id="class-gpus"),
        pytest.param({"nodeClasses": [NODES]}, "nodeClasses[0].cpu", id="class-cpu-size"),
        pytest.param(
            {"nodeClasses": [{**NODES, "cpu": 4, "memory": "8Gi", "nodesPerNvlinkDomain": 4}]},
            "nodeClasses[0].nodesPerNvlinkDomain",
            id="class-domain",
        ),
        pytest.param(
            {"engines": {"defaultVersion": "0.33.0", "versions": [{"version": "0.20.2"}]}},
            "engines.defaultVersion",
            id="default-version-listed",
        ),
        pytest.param({"budgets": [{"namespace": "a"}, {"namespace": "a"}]}, "budgets", id="a namespace twice"),
        pytest.param({"presets": [{"name": "a", "description": "x", "spec": {"model": {}}}]}, "presets[0].spec.model", id="a preset with a model"),
        pytest.param({"presets": [{"name": "a", "description": "x", "spec": {"workload": {"preset": "chat"}}}]}, "presets[0].spec.workload.preset", id="preset-names-none"),
        pytest.param({"prices": {"cpuCoreHour": 0.04}}, "prices.cpuCoreHour", id="a price that is a float"),
        pytest.param({"network": {"httpProxy": "proxy:3128"}}, "network.httpProxy", id="a proxy without a scheme"),
        pytest.param(
            {"network": {"modelscopeEndpoint": "http://mirror"}, "runtime": {"enabled": False}},
            "network.modelscopeEndpoint",
            id="modelscope-by-https",
        ),
    ],
)  # fmt: skip
def test_a_contradiction_is_named(given: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_config(json.dumps(HEAD | given))
    assert [problem.field for problem in caught.value.problems] == [field]


@pytest.mark.parametrize(
    ("control", "problem"),
    [
        ("prometheusMatchLabels: {k8s.cluster: a}", "prometheusMatchLabels.k8s.cluster: a name must hold only"),
        ("prometheusMatchLabels: {1a: a}", "prometheusMatchLabels.1a: a name must hold only"),
        ("prometheusMatchLabels: {__name__: up}", "prometheusMatchLabels: prometheusMatchLabels must leave out __name__"),
        ("prometheusMatchLabels: {cluster: ''}", "prometheusMatchLabels.cluster: must have at least 1 character"),
        ("prometheusMatchLabels: {cluster: 'a\tb'}", "prometheusMatchLabels.cluster: must be one line"),
        ("prometheusMatchLabels: {cluster: 1}", "prometheusMatchLabels.cluster: must be text; put it in quotes"),
        ("prometheusMatchLabels: {cluster: [a, b]}", "prometheusMatchLabels.cluster: must be text"),
        ("prometheusMatchLabels: cluster", "prometheusMatchLabels: must be a group of fields"),
        ("prometheusHeaders: {'X Scope': a}", "prometheusHeaders.X Scope: the name of a header must hold only"),
        ("prometheusHeaders: {X-Scope-OrgID: 'a '}", "prometheusHeaders.X-Scope-OrgID: must hold only ASCII letters"),
        ("prometheusHeaders: {authorization: Bearer x}", "prometheusHeaders: prometheusHeaders must leave Authorization to prometheusTokenFile"),
        ("prometheusHeaders: {Content-Type: text/plain}", "prometheusHeaders: prometheusHeaders must leave Authorization"),
    ],
)  # fmt: skip
def test_what_no_prometheus_could_be_asked_by_is_refused_by_its_field(control: str, problem: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_config(f"{json.dumps(HEAD)[:-1]}, control: {{{control}}}}}")
    (found,) = caught.value.problems
    assert str(found).startswith(f"control.{problem}")


def test_a_cluster_may_be_told_by_any_words_and_a_tenant_by_a_header() -> None:
    said = {
        "prometheusMatchLabels": {"cluster": 'Köln "1"', "__tenant_id__": "a"},
        "prometheusHeaders": {"X-Scope-OrgID": "a|b"},
    }
    control = load_config(json.dumps({**HEAD, "control": said})).control
    assert control.prometheus_match_labels == said["prometheusMatchLabels"]
    assert control.prometheus_headers == said["prometheusHeaders"]


@pytest.mark.parametrize("name", ["httpProxy", "httpsProxy"])
@pytest.mark.parametrize(
    "proxy",
    [
        "https://proxy:3129",
        "socks5://proxy:1080",
        "http://svc:S3cr3t/Pass@proxy:3128",
        "http://svc:S3cr3t#Pass@proxy:3128",
        "http://svc:S3cr3t?Pass@proxy:3128",
        "https://svc:S3cr3tPass@proxy:3129",
    ],
)
def test_a_proxy_that_no_pod_could_ask_is_refused_and_its_password_not_told(name: str, proxy: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_config(json.dumps({**HEAD, "network": {name: proxy}}))
    (problem,) = caught.value.problems
    assert problem.field == f"network.{name}"
    assert problem.message.startswith("must be http://HOST:PORT or http://USER:PASSWORD@HOST:PORT")
    assert not any(word in str(problem) for word in ("S3cr3t", "Pass@"))


@pytest.mark.parametrize(
    "proxy",
    ["http://proxy", "http://10.0.0.1:3128/", "http://[fd00::1]:3128", "http://svc:S3%2F!$&@proxy:3128"],
)
def test_a_proxy_that_pods_can_ask_is_taken(proxy: str) -> None:
    network = load_config(json.dumps({**HEAD, "network": {"httpProxy": proxy, "httpsProxy": proxy}})).network
    assert (network.http_proxy, network.https_proxy) == (proxy, proxy)


@pytest.mark.parametrize(
    ("endpoint", "enabled"), [("http://mirror:8080/a", True), ("https://mirror/a", False)]
)
def test_a_mirror_of_modelscope_is_taken_where_somebody_can_ask_it(endpoint: str, enabled: bool) -> None:
    said = {"network": {"modelscopeEndpoint": endpoint}, "runtime": {"enabled": enabled}}
    assert load_config(json.dumps({**HEAD, **said})).network.modelscope_endpoint == endpoint


@pytest.mark.parametrize("name", ["hubEndpoint", "modelscopeEndpoint", "s3Endpoint"])
@pytest.mark.parametrize("sign", ["/", "#", "?"])
def test_an_address_whose_password_is_not_escaped_is_refused_and_its_password_not_told(
    name: str, sign: str
) -> None:
    written = f"https://ci:S3cr3t{sign}Pass@mirror/hub"
    with pytest.raises(SpecError) as caught:
        load_config(json.dumps({**HEAD, "network": {name: written}}))
    (problem,) = caught.value.problems
    assert problem.field == f"network.{name}"
    assert "must be escaped" in problem.message
    assert not any(word in str(problem) for word in ("S3cr3t", "Pass@"))


@pytest.mark.parametrize(
    "address",
    [
        "https://ci:S3%2F!$&@mirror/hub?a=b#c",
        "http://[fd00::1]:80",
        "https://mirror:8443/a:b/",
        "https://m?a=1",
    ],
)
def test_any_other_address_is_taken(address: str) -> None:
    said = {"network": {"hubEndpoint": address}, "prometheusUrl": address}
    config = load_config(json.dumps({**HEAD, **said}))
    assert (config.network.hub_endpoint, config.prometheus_url) == (address, address)
