"""Hundreds of resources over all abilities: each renders to objects that hold together, whatever was combined."""

import pytest

from plimsoll import names
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.models import lookup
from plimsoll.render.revision import Revision
from plimsoll.render.sets import freeze, owner_of, workload
from tests.render.building import config, engine_of, engine_words, plain, templates
from tests.render.generating import DENSE, MIXTURE, generated

ADMIN = config(trust={"remoteCode": [{"source": "*"}]})


@pytest.mark.parametrize("version", ["0.33.0", "0.20.2"])
def test_every_generated_resource_gives_whole_pods_that_tell_the_engine_only_what_it_knows(version):
    facts = engine_facts("vllm", version)
    models = {False: lookup(DENSE), True: lookup(MIXTURE)}
    for asked, chosen, mixture in generated(250, facts):
        owner = owner_of(asked)
        revision = freeze(asked, chosen, facts=facts, config=ADMIN, model=models[mixture])
        body = plain(revision.manifest(owner).body)
        assert Revision.read(body) == revision
        for template in templates(list(workload(revision, owner, 1))):
            hold_together(template, facts)


def hold_together(template, facts):
    pod, engine = template["spec"], engine_of(template)
    volumes = [one["name"] for one in pod["volumes"]]
    mounts = [one["mountPath"] for one in engine["volumeMounts"]]
    assert sorted({one["name"] for one in engine["volumeMounts"]}) == sorted(volumes)
    assert len(set(volumes)) == len(volumes)
    assert len(set(mounts)) == len(mounts)
    variables = [one["name"] for one in engine["env"]]
    assert len(set(variables)) == len(variables)
    words = engine_words(template)
    if words[:2] != ["ray", "start"]:
        own = words if words[0] == "vllm" else words[words.index("--then") + 1 :]
        flags = [word for word in own if word.startswith("--")]
        assert [
            flag for flag in flags if flag.partition("=")[0] not in facts.flags and not facts.flags.find(flag)
        ] == []
    assert template["metadata"]["labels"][names.LABEL_LEADER] in ("true", "false")
