"""The admission webhook, which is optional: without it the same is told in conditions.

It changes nothing, so dry runs are answered like all other requests. Where a request cannot be judged (the API server does not say what the
user may do, time runs out) the answer is an error, and the webhook's failure policy decides. The verdict is made by `reconcile.admission`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from aiohttp import web
from pydantic import ValidationError

from plimsoll import names
from plimsoll.api.defaults import effective
from plimsoll.api.plainjson import parsed
from plimsoll.api.problems import SpecError, problems_of
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.facts.inventory import Inventory
from plimsoll.handlers.serving import runner_of
from plimsoll.kube.errors import KubeError
from plimsoll.kube.rights import Rights, User
from plimsoll.planning.plan import Plan
from plimsoll.planning.planner import PlanFacts
from plimsoll.reconcile.admission import Verdict, forbidden, has_errors, judged, newly_named, unjudged
from plimsoll.reconcile.decide import foreseen
from plimsoll.reconcile.kept import KeptModel
from plimsoll.reconcile.known_models import known_models
from plimsoll.reconcile.models import Missing
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.world import World

LOG: Final = logging.getLogger(__name__)
PATH: Final = "/validate"
LONGEST_BODY: Final = 8 * 2**20
"""Room for two objects of the largest size that the API server takes."""
ANSWER_SECONDS: Final = 4.0
"""How long an answer may take. The API server waits for five seconds by the chart."""
AT_ONCE: Final = 32
"""Requests that are judged at once."""
READ_SECONDS: Final = 2.0
"""How long a body may take. It is read before a request takes one of those places, so that nobody holds them who sends slowly."""
MOST_HELD: Final = AT_ONCE * LONGEST_BODY
"""Bytes of all bodies that are held at once, so that a flood of them takes no more memory."""
MOST_PLANS: Final = 4
"""Plans that are made or waited for at once. A plan takes 10 ms and more, and whoever creates a thousand resources must not wait for
each, so further ones are judged without a plan."""
MODEL_SECONDS: Final = 1.5
"""How long a model hub is waited for. The question goes on, so that turns find the answer later."""
REVIEW: Final = "admission.k8s.io/v1"
PLAIN: Final = LLMDeployment.model_validate(
    {
        "metadata": {"name": "plain", "namespace": "plain"},
        "spec": {
            "model": {
                "source": "hf://plain/plain",
                "architecture": {
                    "config": json.dumps({
                        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
                        "hidden_size": 1024, "intermediate_size": 4096, "vocab_size": 32000, "num_hidden_layers": 8,
                        "num_attention_heads": 8, "num_key_value_heads": 8, "max_position_embeddings": 8192,
                    })
                },
            }
        },
    }
)  # fmt: skip
"""A model that is so small that it fits any device, and whose facts are known without asking a hub."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    port: int
    hosts: tuple[str, ...]
    secret: str
    configuration: str | None = None
    """Name of the ValidatingWebhookConfiguration. None where somebody else keeps the certificate and the configuration's bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An admission request, as far as it is read."""

    uid: str
    user: User
    deployment: LLMDeployment
    before: LLMDeployment | None


@dataclass(slots=True)
class ReviewCounts:
    """Counts for the operator's own metrics."""

    answers: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


class Admission:
    """Judges admission requests. `inventory` gives the fleet as a deployment (namespace/name) may use it, with pools divided by its node
    selector."""

    def __init__(
        self,
        world: World,
        rights: Rights,
        *,
        inventory: Callable[[str, Mapping[str, str]], Inventory],
        namespaces: tuple[str, ...] = (),
    ) -> None:
        self._world = world
        self._rights = rights
        self._inventory = inventory
        self._namespaces = namespaces
        self._thinking = ThreadPoolExecutor(1, "admission")
        self._planning = 0
        self._looking: set[asyncio.Task[PlanFacts]] = set()
        self.counts = ReviewCounts()

    async def warm(self) -> None:
        """Plans an example, so that the first real request does not wait for files that are read and code that is loaded only once. An
        error is logged and ends nothing, as turns would meet it too and handle it."""
        try:
            await self._plan(PLAIN, self._seen_by(PLAIN))
        except Exception:
            LOG.exception("what the webhook judges to be warm cannot be planned")

    def close(self) -> None:
        for task in self._looking:
            task.cancel()
        self._thinking.shutdown(wait=False, cancel_futures=True)

    async def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The response to an admission request. Raises KubeError and TimeoutError where it cannot be judged."""
        uid = str(request.get("uid", ""))
        if not self._concerns(request):
            return {"uid": uid, "allowed": True}
        try:
            asked = _asked(request)
        except ValidationError as error:
            # The schema has accepted it. A newer schema than this release's may be served, so the object is not refused.
            problems = "; ".join(map(str, problems_of(error, LLMDeployment)))
            return {
                "uid": uid,
                "allowed": True,
                "warnings": [f"not judged, it cannot be read: {problems}"[:250]],
            }
        verdict = await self.verdict(asked)
        return _response(uid, verdict)

    async def verdict(self, asked: Asked) -> Verdict:
        deployment, before = asked.deployment, asked.before
        inventory = self._seen_by(deployment)
        # While this plans, the API server looks up what the user may do.
        lacking, (plan, stood) = await asyncio.gather(
            self._rights.lacking(asked.user, deployment.namespace, newly_named(deployment, before)),
            self._plans(deployment, before, inventory),
        )
        return judged(
            plan,
            inventory,
            on_cpu=deployment.spec.topology.cpu is not None,
            before=stood,
            rights=forbidden(asked.user.name, deployment.namespace, lacking),
        )

    async def _plans(
        self, deployment: LLMDeployment, before: LLMDeployment | None, inventory: Inventory
    ) -> tuple[Plan, Plan | None]:
        """The plan, and where it has errors also the plan from before the edit."""
        plan = await self._plan(deployment, inventory)
        if before is None or not has_errors(plan):
            return plan, None
        return plan, await self._plan(before, self._seen_by(before))

    async def _plan(self, deployment: LLMDeployment, inventory: Inventory) -> Plan:
        """The plan that a first turn would make. Where that would take too long, only what is wrong whatever the model is gets found."""
        if self._planning >= MOST_PLANS:
            return self._unplanned(deployment, inventory, "many resources come at once")
        self._planning += 1
        try:
            facts = await self._facts(deployment)
            if facts is None:
                why = f"what is known of {deployment.spec.model.source} is still being read"
                return self._unplanned(deployment, inventory, why)
            seen = self._seen(deployment, inventory, facts)
            return await asyncio.get_running_loop().run_in_executor(self._thinking, foreseen, seen)
        finally:
            self._planning -= 1

    def _unplanned(self, deployment: LLMDeployment, inventory: Inventory, why: str) -> Plan:
        """A plan without the model's facts, which takes a millisecond: it finds only what is wrong whatever the model is."""
        seen = self._seen(deployment, inventory, PlanFacts(model=None, problem=why))
        return unjudged(foreseen(seen), why)

    def _seen(self, deployment: LLMDeployment, inventory: Inventory, facts: PlanFacts) -> Seen:
        return Seen(
            deployment=deployment,
            facts=facts,
            inventory=inventory,
            now=self._world.now(),
            learned=self._world.learned,
            config=self._world.config,
            capabilities=self._world.capabilities(),
        )

    def _seen_by(self, deployment: LLMDeployment) -> Inventory:
        try:
            spec = effective(deployment.spec, deployment.namespace, self._world.config).spec
        except SpecError:
            spec = deployment.spec
        key = f"{deployment.namespace}/{deployment.name}"
        return self._inventory(key, spec.topology.node_selector)

    async def _facts(self, deployment: LLMDeployment) -> PlanFacts | None:
        """What is known of the model; None where a hub does not answer in time."""
        task = asyncio.create_task(self._known(deployment))
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)
        done, _ = await asyncio.wait({task}, timeout=MODEL_SECONDS)
        return task.result() if done else None

    async def _known(self, deployment: LLMDeployment) -> PlanFacts:
        world, kept = self._world, tuple[KeptModel, ...]()
        found = await world.models.look(deployment.spec)
        if any(isinstance(one, Missing) for one in found.values()):
            with suppress(KubeError):
                kept = (await world.kept(f"{deployment.namespace}/{deployment.name}")).models
        return known_models(deployment, found, kept, world.config)

    def _concerns(self, request: Mapping[str, Any]) -> bool:
        """Whether a request is to be judged: a creation or an edit of an LLMDeployment that is watched, not of its status, and not one on
        its deletion."""
        kind = request.get("kind") or {}
        body = request.get("object") or {}
        return (
            (kind.get("group"), kind.get("kind")) == (names.GROUP, names.KIND)
            and request.get("operation") in ("CREATE", "UPDATE")
            and not request.get("subResource")
            and not (body.get("metadata") or {}).get("deletionTimestamp")
            and (not self._namespaces or request.get("namespace") in self._namespaces)
        )


def _asked(request: Mapping[str, Any]) -> Asked:
    about = request.get("userInfo") or {}
    user = User(
        name=str(about.get("username") or ""),
        uid=str(about.get("uid") or ""),
        groups=tuple(about.get("groups") or ()),
        extra=about.get("extra") or {},
    )
    body, old = dict(request["object"]), request.get("oldObject")
    # Where the name is still to be generated its prefix is taken; the namespace is in the request.
    metadata = {**body["metadata"], "namespace": request.get("namespace")}
    metadata.setdefault("name", f"{str(metadata.get('generateName', 'x')).rstrip('-')}")
    body["metadata"] = metadata
    before = None
    if old is not None:
        try:
            before = LLMDeployment.observed(old)
        except ValidationError:
            before = None
    return Asked(
        uid=str(request.get("uid", "")), user=user, deployment=LLMDeployment.observed(body), before=before
    )


def _response(uid: str, verdict: Verdict) -> dict[str, Any]:
    response: dict[str, Any] = {"uid": uid, "allowed": verdict.allowed}
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    if not verdict.allowed:
        response["status"] = {
            "status": "Failure",
            "code": 403 if verdict.forbidden else 422,
            "reason": "Forbidden" if verdict.forbidden else "Invalid",
            "message": "; ".join(verdict.problems),
        }
    return response


@dataclass(slots=True)
class _Bodies:
    """The bodies of all requests that are being answered."""

    held: int = 0
    """Their bytes."""

    @asynccontextmanager
    async def read(self, request: web.Request) -> AsyncIterator[bytes]:
        body = bytearray()
        try:
            async with asyncio.timeout(READ_SECONDS):
                async for chunk in request.content.iter_any():
                    body += chunk
                    self.held += len(chunk)
                    if len(body) > LONGEST_BODY:
                        raise web.HTTPRequestEntityTooLarge(LONGEST_BODY)
                    if self.held > MOST_HELD:
                        raise TimeoutError("too much is sent at once")
            yield bytes(body)
        finally:
            self.held -= len(body)


async def _validate(
    admission: Admission, turnstile: asyncio.Semaphore, bodies: _Bodies, request: web.Request
) -> web.Response:
    """Answers an AdmissionReview. The turnstile bounds how many are judged at once."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    outcome = "error"
    try:
        async with asyncio.timeout(ANSWER_SECONDS), bodies.read(request) as body, turnstile:
            review = parsed(body)
            asked = review.get("request") if isinstance(review, dict) else None
            if not isinstance(asked, dict) or review.get("apiVersion") != REVIEW:
                return web.Response(status=400, text=f"no AdmissionReview of {REVIEW} with a request")
            response = await admission.answer(asked)
        outcome = "allowed" if response["allowed"] else "denied"
        return web.json_response(
            {
                "apiVersion": REVIEW,
                "kind": "AdmissionReview",
                "response": response,
            }
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return web.Response(status=400, text=f"cannot be read: {type(error).__name__}: {error}")
    except (KubeError, TimeoutError) as error:
        text = str(error) or f"no verdict within {ANSWER_SECONDS:.0f} s"
        LOG.warning("a request was not judged: %s", text)
        return web.Response(status=503, text=text)
    finally:
        admission.counts.answers[outcome] += 1
        admission.counts.seconds += loop.time() - began


async def serve_admission(
    admission: Admission, host: str, port: int, context: ssl.SSLContext
) -> web.AppRunner:
    """Answers until its cleanup() is awaited. Raises OSError where it cannot listen."""
    app = web.Application(client_max_size=LONGEST_BODY)
    app.add_routes([web.post(PATH, partial(_validate, admission, asyncio.Semaphore(AT_ONCE), _Bodies()))])
    runner = runner_of(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=context).start()
    except OSError:
        await runner.cleanup()
        raise
    return runner
