"""What pods tell the engine, in the words that the kubelet makes of them."""

from functools import cache

from plimsoll.facts.engines import engine_facts
from plimsoll.facts.models import lookup
from plimsoll.render.sets import freeze
from tests.real_parser.watching import watched
from tests.render.building import config, engine_of
from tests.render.generating import DENSE, MIXTURE, generated
from tests.render.test_hostile import expanded

ADMIN = config()
VERSIONS = ("0.33.0", "0.20.2")
RESOURCES = 2000
PLACED = {
    "PLIMSOLL_RANK": "1", "PLIMSOLL_LEADER": "chat-0.chat-headless.x.svc", "LWS_WORKER_INDEX": "1", "LWS_LEADER_ADDRESS": "lws-0",
}  # fmt: skip


@cache
def told(version):
    """The words behind `vllm serve` of every pod, as its process will see them, each with what it is an example of; and what they
    were made from."""
    facts, lines = engine_facts("vllm", version), []
    models = {False: lookup(DENSE), True: lookup(MIXTURE)}
    with watched() as made_from:
        for asked, chosen, mixture in generated(RESOURCES, facts):
            revision = freeze(asked, chosen, facts=facts, config=ADMIN, model=models[mixture])
            kinds = {
                "API key": asked.spec.networking.api_key_secret is not None,
                "MIG": chosen.hardware.partition is not None,
                "CPU pool": chosen.hardware.vendor == "cpu",
                "group by Ray": chosen.pods_per_replica > 1 and asked.spec.topology.executor == "ray",
            }
            for pod in filter(None, (revision.leader, revision.worker)):
                words = own_words(engine_of(pod))
                if words:
                    lines.append((words, mixture, {kind for kind, is_so in kinds.items() if is_so}))
    return lines, made_from


def own_words(engine):
    """Nothing where the pod only lends its devices."""
    words = [*engine["command"], *engine["args"]]
    begin = [place + 2 for place in range(len(words)) if words[place : place + 2] == ["vllm", "serve"]]
    return [expanded(word, PLACED) for word in words[begin[0] :]] if begin else []


def flags_of(words):
    return {word for word in words if word.startswith("--")}
