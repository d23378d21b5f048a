"""Every text of a resource x every kind of attack: what is rendered differs from the harmless only in that text."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from plimsoll import names
from plimsoll.api.defaults import effective
from plimsoll.api.problems import SpecError, problems_of
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.engines import engine_facts
from plimsoll.planning.plan import Finding, Plan, Severity
from plimsoll.planning.settings import LoraSlots, Speculation
from plimsoll.render.facts_pod import asked_of, facts_pod
from plimsoll.render.revision import Workload
from plimsoll.render.sets import freeze, owner_of, workload
from plimsoll.render.shared import plan_object, surroundings
from plimsoll.render.start import verbatim
from tests.planning.asking import planned
from tests.render.building import ROUTES, config, plain, plan_of, resource
from tests.render.cases import entry
from tests.render.hostile import MARK, NESTED, PAYLOADS, free_fields, text_at, texts, with_text

FACTS = engine_facts("vllm")
ADMIN = config(trust={"images": ["*"], "podPatches": {"allow": ["*"]}})
ENTRY = entry(
    lora=LoraSlots(max_loras=1, max_rank=16, max_cpu_loras=1),
    speculation=Speculation(method="eagle", tokens=2),
)
SECRET = {"name": MARK, "key": MARK}
FULL = {
    "model": {
        "source": f"hf://org/{MARK}", "revision": MARK, "servedNames": [MARK], "tokenSecret": SECRET, "tokenizer": f"hf://org/{MARK}",
        "architecture": {"config": f'"{MARK}"'}, "trustRemoteCode": True,
    },
    "storage": {"weights": {"claim": {"name": MARK, "subPath": MARK}}, "cache": {"claimTemplate": {"storageClass": MARK, "accessMode": "ReadWriteOnce"}}},
    "engine": {
        "version": "0.33.0", "image": f"{MARK}/x", "imagePullSecrets": [MARK], "attentionBackend": MARK, "extraArgs": [MARK],
        "env": [{"name": "A_VARIABLE", "value": MARK}, {"name": "B_VARIABLE", "secret": SECRET}],
    },
    "workload": {"preset": None},
    "memory": {"kvCacheDtype": MARK},
    "topology": {"gpuProducts": [MARK], "nodeSelector": {MARK: MARK}, "tolerations": [{"key": MARK, "value": MARK}]},
    "quantization": {"method": MARK},
    "adapters": {"items": [{"name": MARK, "source": f"pvc://{MARK}/sub", "revision": MARK}], "tokenSecret": SECRET},
    "speculative": {"method": "eagle", "model": f"hf://org/{MARK}", "revision": MARK},
    "multimodal": {"allowedDomains": [MARK]},
    "toolCalling": {"parser": MARK},
    "reasoning": {"parser": MARK},
    "chatTemplate": {"inline": MARK},
    "longContext": {"ropeType": "yarn", "factor": "2.0"},
    "networking": {
        "service": {"name": MARK, "labels": {"l": MARK}, "annotations": {"a": MARK}}, "apiKeySecret": SECRET, "tlsSecret": MARK,
        "corsOrigins": [f"https://{MARK}"], "allowFrom": [MARK],
        "gateway": {"name": MARK, "namespace": MARK, "listener": MARK, "hostnames": [MARK], "path": f"/{MARK}", "endpointPicker": {"service": MARK}},
    },
    "podLabels": {"l": MARK},
    "podAnnotations": {"a": MARK},
    "podPatches": [{"op": "add", "path": "/metadata/annotations/patched", "value": f'"{MARK}"'}],
    "scheduling": {"priorityClass": MARK, "queue": MARK, "schedulerName": MARK, "serviceAccount": MARK},
}  # fmt: skip
OTHER = {
    "model": {"source": "hf://a/b"},
    "storage": {"weights": {"image": {"reference": f"{MARK}/x"}}, "cache": {"claim": {"name": MARK, "subPath": MARK}}},
    "chatTemplate": {"configMap": {"name": MARK, "key": MARK}},
    "networking": {"ingress": {"className": MARK, "hosts": [MARK], "path": f"/{MARK}", "annotations": {"a": MARK}, "tlsSecret": MARK}},
    "scaling": {"min": 0, "zero": {"wake": {"query": MARK}}},
}  # fmt: skip
THIRD = {
    "structuredOutput": {"backend": MARK},
    "model": {"source": f"pvc://{MARK}/folder"},
    "storage": {
        "weights": {"claimTemplate": {"storageClass": MARK, "accessMode": "ReadWriteOnce"}},
        "cache": {"claimTemplate": {"storageClass": MARK, "accessMode": "ReadWriteMany"}},
    },
    "adapters": {
        "runtimeLoading": True, "items": [{"name": MARK, "source": f"hf://org/{MARK}", "revision": MARK}], "tokenSecret": SECRET,
    },
}  # fmt: skip
SPECS = {
    "third": LLMDeploymentSpec.model_validate(plain(THIRD)),
    "full": LLMDeploymentSpec.model_validate(plain(FULL)),
    "other": LLMDeploymentSpec.model_validate(plain(OTHER)),
}
SPLIT = ("full-adapters.items.0.source", "third-model.source")
"""A claim's name and a path in it: a slash is read there, as it should be."""
PLACES = [
    (which, path) for which, spec in SPECS.items() for path in texts(spec) if MARK in text_at(spec, path)
]
FIXED = {
    "cost.maxPerHour": {"cost": {"maxPerHour": MARK}},
    "engine.env.name": {"engine": {"env": [{"name": MARK, "value": "x"}]}},
    "engine.version": {"engine": {"version": MARK}},
    "longContext.factor": {"longContext": {"ropeType": "yarn", "factor": MARK}},
    "memory.cpuOffload": {"memory": {"cpuOffload": MARK}},
    "memory.headroom": {"memory": {"headroom": MARK}},
    "memory.kvCacheSize": {"memory": {"kvCacheSize": MARK}},
    "memory.kvOffload.size": {"memory": {"kvOffload": {"size": MARK}}},
    "model.architecture.weightBytes": {
        "model": {"source": "hf://a/b", "architecture": {"weightBytes": MARK}}
    },
    "podPatches.path": {"podPatches": [{"op": "add", "path": MARK, "value": "1"}]},
    "slo.availabilityPercent": {"slo": {"availabilityPercent": MARK}},
    "storage.cache.claimTemplate.size": {"storage": {"cache": {"claimTemplate": {"size": MARK}}}},
    "storage.cache.emptyDir.sizeLimit": {"storage": {"cache": {"emptyDir": {"sizeLimit": MARK}}}},
    "storage.cache.image.reference": {"storage": {"cache": {"image": {"reference": MARK}}}},
    "storage.weights.claimTemplate.size": {"storage": {"weights": {"claimTemplate": {"size": MARK}}}},
    "storage.weights.emptyDir.sizeLimit": {"storage": {"weights": {"emptyDir": {"sizeLimit": MARK}}}},
    "topology.cpu.kvCacheSize": {"topology": {"cpu": {"kvCacheSize": MARK}}},
    "topology.cpu.memory": {"topology": {"cpu": {"memory": MARK}}},
    "workload.preset": {"workload": {"preset": MARK}},
    "workload.requestsPerSecond": {"workload": {"requestsPerSecond": MARK}},
}
"""Numbers in text, words that stand for something known, a path that says where: all of them are read, and the schema takes no
attack in their place, by the name of the field."""
HARMLESS = {("engine.env.name", "word"), ("workload.preset", "word")}
"""What it does take: a variable may be called so, and a preset of that name is one that nobody knows."""
UNPLACED = {
    "full-topology.gpu_products.0": "chooses the pools; pods get the labels of the pool that was chosen",
    "full-topology.node_selector.benign0": "chooses the pools as well",
    "full-adapters.items.0.revision": "adapters that do not come and go are read from their claim, which has no revisions",
    "full-adapters.token_secret.name": "nothing is fetched for them either",
    "full-adapters.token_secret.key": "nothing is fetched for them either",
    "full-model.architecture.config": "is read for the plan, which is made before",
    "other-scaling.zero.wake.query": "is asked of Prometheus by the operator itself",
}
"""Places whose text is by design in no object, with the reason."""
ABSENT = ("full-networking.service.name", "full-networking.gateway.path")
"""An empty text is as none there, and none is the deployment's own name, or every path."""


def rendered(spec):
    """All objects that a resource's text gets into, with the set's own name and hashes taken out."""
    asked = resource()
    asked = asked.model_copy(update={"spec": spec})
    revision, owner = freeze(asked, ENTRY, facts=FACTS, config=ADMIN), owner_of(asked)
    objects = [revision.manifest(owner), *workload(revision, owner, 1)]
    grouped = replace(revision, workload=Workload.STATEFUL_SET)
    objects += [*workload(grouped, owner, 1), *surroundings(asked, [grouped], ADMIN, ROUTES, stay=1)]
    # Of a draft the rules of a model are asked anew, and refuse here what the schema would have.
    alone = effective(spec, asked.namespace, ADMIN).spec.model_copy(update={"speculative": None})
    for one in asked_of(alone, ADMIN).values():
        objects.append(facts_pod(owner, spec, ADMIN, one, ticket="t", attempt=1))
    text = json.dumps([one.body for one in objects], sort_keys=True)
    text = text.replace(revision.digest, "DIGEST").replace(revision.digest[:8], "DIGEST")
    text = re.sub(r'\\"id\\": \\"[0-9a-f]+\\"', "ID", text)
    return re.sub(rf'"{re.escape(names.ANNOTATION_HASH)}": "[0-9a-f]+"', '"hash": "."', text)


PLAN = plan_of(resource())
BENIGN = {which: json.loads(rendered(spec)) for which, spec in SPECS.items()}


def differences(harmless, found, payload, place=""):
    """Where two trees differ by more than the payload in the place of the mark; words of JSON hold it escaped."""
    if isinstance(harmless, dict) and isinstance(found, dict) and len(harmless) == len(found):
        renamed = {key: key.replace(MARK, payload) for key in harmless}
        if set(found) == set(harmless):
            renamed = {key: key for key in harmless}
        return [
            where
            for key, value in harmless.items()
            for where in differences(value, found.get(renamed[key], "missing"), payload, f"{place}.{key}")
        ]
    if isinstance(harmless, list) and isinstance(found, list) and len(harmless) == len(found):
        return [
            where
            for number, (one, other) in enumerate(zip(harmless, found, strict=True))
            for where in differences(one, other, payload, f"{place}[{number}]")
        ]
    if harmless == found:
        return []
    if isinstance(harmless, str) and isinstance(found, str) and MARK in harmless:
        inside = [json.dumps(payload, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)]
        forms = {form for one in (payload, *inside) for form in (one, verbatim(one))}
        parts = "|".join(sorted(map(re.escape, forms), key=len, reverse=True))
        pattern = f"({parts}|{MARK})".join(map(re.escape, harmless.split(MARK)))
        if re.fullmatch(pattern, found, re.DOTALL):
            return []
    return [f"{place}: {str(harmless)[:200]} became {str(found)[:200]}"]


@pytest.mark.parametrize("kind", PAYLOADS)
@pytest.mark.parametrize(
    ("which", "path"),
    PLACES,
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else value,
)
def test_hostile_text_stays_the_text_of_its_field(which, path, kind):
    harmless, payload = text_at(SPECS[which], path), PAYLOADS[kind]
    if "/" in payload and f"{which}-{'.'.join(map(str, path))}" in SPLIT:
        pytest.skip("a slash divides here")
    if not payload and f"{which}-{'.'.join(map(str, path))}" in ABSENT:
        pytest.skip("no text is no name here")
    if path[0] == "pod_patches":
        payload = json.dumps(payload)[1:-1]
    spec = with_text(SPECS[which], path, harmless.replace(MARK, payload))
    assert differences(BENIGN[which], json.loads(rendered(spec)), PAYLOADS[kind]) == []


def test_every_place_for_free_text_is_among_those_that_are_tried():
    tried = {".".join(step for step in path if isinstance(step, str)) for _, path in PLACES}
    maps = {place.rpartition(".")[0] for place in tried}
    places = {place for place in free_fields() if ".".join(map(to_camel, place.split("."))) not in FIXED}
    assert sorted(places - tried - maps) == []


def refused(said):
    """The fields by which the schema refuses it."""
    try:
        LLMDeploymentSpec.model_validate({"model": {"source": "Qwen/Qwen3-8B"}, **said})
    except ValidationError as error:
        return {re.sub(r"\[\d+\]", "", one.field) for one in problems_of(error, LLMDeploymentSpec)}
    return set()


@pytest.mark.parametrize("kind", PAYLOADS)
@pytest.mark.parametrize("place", FIXED)
def test_a_place_for_a_number_or_a_known_word_takes_no_hostile_text(place, kind):
    said = json.loads(json.dumps(FIXED[place]).replace(json.dumps(MARK), json.dumps(PAYLOADS[kind])))
    named = refused(said)
    assert any(f"{place}.".startswith(f"{one}.") for one in named) != ((place, kind) in HARMLESS), named


def test_a_variable_may_bear_any_name_and_differs_by_that_alone():
    def named(name):
        return rendered(LLMDeploymentSpec.model_validate(
            {"model": {"source": "hf://a/b"}, "engine": {"env": [{"name": name, "value": "x"}]}}
        ))  # fmt: skip

    assert named(PAYLOADS["word"]) == named("zero").replace('"zero"', f'"{PAYLOADS["word"]}"')


def test_a_preset_that_nobody_knows_is_refused_by_its_field():
    with pytest.raises(SpecError, match=r"spec\.workload\.preset"):
        effective(resource(workload={"preset": PAYLOADS["word"]}).spec, "team-a", ADMIN)


def rendered_or_refused(spec):
    """The objects, and why there are none."""
    try:
        return json.loads(rendered(spec)), ""
    except SpecError as error:
        return [], str(error)


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize(
    "said",
    [
        {"podPatches": [{"op": "add", "path": "/metadata/annotations/patched", "value": MARK}]},
        {"podPatches": [{"op": "add", "path": "/spec/containers/0/env", "value": MARK}]},
        {"podPatches": [{"op": "test", "path": "/spec/containers", "value": MARK}]},
        {"engine": {"extraArgs": [f"--hf-overrides={MARK}", "--compilation-config", MARK, f"--cpu-offload-gb={MARK}"]}},
        {"engine": {"env": [{"name": "VLLM_CONFIG", "value": MARK}]}},
        {"model": {"source": "hf://a/b", "architecture": {"config": MARK}}},
        {"chatTemplate": {"inline": MARK}},
        {"podAnnotations": {"a": MARK}},
    ],
    ids=["annotation", "list", "compared", "arguments", "variable", "model", "template", "text"],
)  # fmt: skip
def test_nested_text_is_refused_by_its_field_or_planned_and_rendered_in_one_piece(said, kind):
    """Nothing goes down it further than the schema lets it, and what is refused is refused by its place."""
    field = next(iter(said))
    given = json.loads(json.dumps(said).replace(MARK, json.dumps(NESTED[kind])[1:-1]))
    named = refused(given)
    assert all(one.startswith(field) for one in named), named
    if not named:
        spec = LLMDeploymentSpec.model_validate({"model": {"source": "Qwen/Qwen3-8B"}, **given})
        asked = resource().model_copy(update={"spec": spec})
        made = planned(asked, config=ADMIN.to_dict())
        assert made.sets or made.findings
        objects, why = rendered_or_refused(spec)
        assert objects or f"spec.{field}" in why


def test_objects_of_every_kind_are_among_those_that_are_tried():
    kinds = {one["kind"] for objects in BENIGN.values() for one in objects}
    assert kinds >= {
        "ConfigMap",
        "ControllerRevision",
        "Deployment",
        "HTTPRoute",
        "Ingress",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "Service",
        "StatefulSet",
    }


@pytest.mark.parametrize("kind", PAYLOADS)
def test_hostile_text_in_a_plan_is_read_back_as_it_was_said(kind):
    said = Finding(severity=Severity.WARNING, reason="X", message=PAYLOADS[kind], value=PAYLOADS[kind])
    plan = replace(PLAN, choice=PAYLOADS[kind], findings=(said,))
    body = json.loads(json.dumps(plan_object(owner_of(resource()), plan).body))
    assert Plan.from_bytes(body["data"][names.PLAN_KEY].encode()) == plan
    assert set(body["data"]) == {names.PLAN_KEY}


def test_a_label_of_ours_among_the_user_s_is_refused():
    with pytest.raises(SpecError, match=r"spec\.podLabels: labels under plimsoll\.dev/ are Plimsoll's own"):
        freeze(resource(podLabels={names.LABEL_SET: "x"}), ENTRY, facts=FACTS, config=ADMIN)


def expanded(text, variables):
    """What the kubelet makes of $(NAME), by the rules of its documentation."""
    out, place = [], 0
    while place < len(text):
        if text.startswith("$$", place):
            out.append("$")
            place += 2
        elif text.startswith("$(", place) and ")" in text[place:]:
            end = text.index(")", place)
            name = text[place + 2 : end]
            out.append(variables.get(name, text[place : end + 1]))
            place = end + 1
        else:
            out.append(text[place])
            place += 1
    return "".join(out)


@given(st.text(st.sampled_from("$()aHOME ")))
def test_the_kubelet_expands_nothing_in_a_word_that_a_user_wrote(text):
    assert expanded(verbatim(text), {"HOME": "/leak", "a": "leak", "": "leak"}) == text
