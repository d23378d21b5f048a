"""From a resource to objects in one call, for the tests of rendering."""

import json
from collections.abc import Iterable
from typing import Any, Final

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.facts.capabilities import NONE, Capabilities
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.inventory import Pool
from plimsoll.facts.models import lookup
from plimsoll.objects import Body, Manifest
from plimsoll.planning.plan import Plan, PlanSet
from plimsoll.render.revision import Revision
from plimsoll.render.sets import freeze, owner_of, workload
from plimsoll.render.shared import plan_object, surroundings
from tests.planning.asking import deployment, planned

UID = "6f1c2a34-0000-4000-8000-000000000001"
ROUTES = frozenset(
    {
        ("gateway.networking.k8s.io", "HTTPRoute"),
        ("inference.networking.k8s.io", "InferencePool"),
        ("monitoring.coreos.com", "PodMonitor"),
    }
)


def resource(
    source: str = "Qwen/Qwen3-8B",
    *,
    name: str = "chat",
    namespace: str = "team-a",
    uid: str | None = UID,
    **spec: Any,
) -> LLMDeployment:
    made: LLMDeployment = deployment(source, name=name, namespace=namespace, **spec)
    return made.model_copy(update={"metadata": made.metadata.model_copy(update={"uid": uid})})


def config(**said: Any) -> OperatorConfig:
    return OperatorConfig.model_validate(said)


UNSUPERVISED: Final = config(runtime={"enabled": False})


def engine_words(template: Any) -> list[str]:
    """The whole command line of the engine, whoever starts it."""
    engine = engine_of(template)
    words = [*engine["command"], *engine["args"]]
    return words[words.index("--") + 1 :] if words[0] == "python3" and words[3].endswith(".pyz") else words


def plan_of(asked: LLMDeployment, *pools: Pool, admin: OperatorConfig | None = None) -> Plan:
    made: Plan = planned(asked, *pools, config=(admin or config()).to_dict())
    assert made.sets, made.findings
    return made


def frozen(
    asked: LLMDeployment,
    *pools: Pool,
    admin: OperatorConfig | None = None,
    version: str | None = None,
    chosen: PlanSet | None = None,
) -> Revision:
    """The first set of the deployment's plan, at its birth."""
    chosen = chosen or plan_of(asked, *pools, admin=admin).sets[0]
    facts = engine_facts("vllm", version or asked.spec.engine.version)
    model = lookup(asked.spec.model.source)
    return freeze(asked, chosen, facts=facts, config=admin or config(), model=model)


def everything(
    asked: LLMDeployment, *pools: Pool, admin: OperatorConfig | None = None, capabilities: Capabilities = NONE
) -> list[Manifest]:
    """All objects of a deployment, as a turn would apply them."""
    admin = admin or config()
    made = plan_of(asked, *pools, admin=admin)
    owner = owner_of(asked)
    revisions = [frozen(asked, admin=admin, chosen=chosen) for chosen in made.sets]
    stay = sum(one.replicas * one.pods_per_replica for one in made.sets)
    around = surroundings(asked, revisions, admin, capabilities, stay=stay)
    objects = [plan_object(owner, made), *around]
    for revision in revisions:
        objects.append(revision.manifest(owner))
        objects += workload(revision, owner, max(1, revision.entry.replicas))
    return objects


def bodies(objects: Iterable[Manifest]) -> list[Body]:
    return [one.body for one in objects]


def of_kind(objects: Iterable[Manifest], kind: str) -> list[Body]:
    return [one.body for one in objects if one.ref.kind == kind]


def only(objects: Iterable[Manifest], kind: str) -> Body:
    (found,) = of_kind(objects, kind)
    return found


def engine_of(template: Any) -> dict[str, Any]:
    return next(dict(one) for one in template["spec"]["containers"] if one["name"] == "engine")


def templates(objects: Iterable[Manifest]) -> list[dict[str, Any]]:
    """Every pod template of the workload objects."""
    found: list[dict[str, Any]] = []
    for one in objects:
        if one.ref.kind in ("Deployment", "StatefulSet"):
            found.append(one.body["spec"]["template"])
        elif one.ref.kind == "LeaderWorkerSet":
            group = one.body["spec"]["leaderWorkerTemplate"]
            found += [group[key] for key in ("leaderTemplate", "workerTemplate") if key in group]
    return found


def variables(template: Any) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in engine_of(template)["env"]}


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def on_set(asked: LLMDeployment, chosen: PlanSet, **others: Any) -> list[Manifest]:
    """The objects of one set that no planner chose, so that they change with rendering alone."""
    admin = others.pop("admin", None) or config()
    revision, owner = frozen(asked, chosen=chosen, admin=admin, **others), owner_of(asked)
    return [revision.manifest(owner), *workload(revision, owner, chosen.replicas)]
