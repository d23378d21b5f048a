"""Whole objects in files: a change of rendering is a diff that somebody reads."""

from pathlib import Path

import pytest
import yaml

from plimsoll.api.presets import built_in_presets
from plimsoll.cli.render import text_of
from plimsoll.objects import manifest
from tests.render.building import UNSUPERVISED, config, engine_words, frozen, on_set, plain, resource
from tests.render.cases import KINDS

GOLDEN = Path(__file__).parent / "golden"
ADMIN = config(
    registry={"mirror": "mirror.example/hub", "pullSecrets": ["mirror"]},
    network={"httpsProxy": "http://proxy.example:3128", "noProxy": [".svc"], "caBundle": "roots"},
    trust={"podPatches": {"allow": ["/spec/hostname"]}},
)


def shown(one):
    """Without what stands elsewhere: a revision holds the pods again, and what planning thought of the set."""
    body = plain(one.body)
    for key in ("entry", "leader", "worker"):
        if key in body.get("data", {}) and one.ref.kind == "ControllerRevision":
            body["data"][key] = "..."
    return text_of(manifest(body))


@pytest.mark.parametrize("kind", KINDS)
def test_the_objects_of_a_set(golden, kind):
    said, chosen = KINDS[kind]
    admin = ADMIN if kind == "rich" else None
    objects = on_set(resource(**said), chosen, admin=admin)
    golden(GOLDEN / f"{kind}.yaml", "".join(map(shown, objects)))


def test_the_objects_of_a_set_whose_engine_nobody_supervises(golden):
    objects = on_set(resource(), KINDS["one-gpu"][1], admin=UNSUPERVISED)
    golden(GOLDEN / "unsupervised.yaml", "".join(map(shown, objects)))


def test_what_the_engine_is_told_for_each_preset(golden):
    """As planned on H100: a change of a preset or of planning is a diff here too."""
    told = {}
    for preset in built_in_presets():
        words = engine_words(frozen(resource(workload={"preset": preset.name})).leader)[2:]
        told[preset.name] = (
            "\n".join(words).replace("\n--", "\n\n--").replace("\n\n", "~").replace("\n", " ").split("~")
        )
    golden(GOLDEN / "presets.yaml", yaml.safe_dump(told, sort_keys=False, width=110))
