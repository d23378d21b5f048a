"""The admission webhook's server: what it answers, what it leaves alone, and what it says it cannot judge."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.learned import NOTHING
from plimsoll.facts.models import lookup
from plimsoll.facts.resolve import Resolver
from plimsoll.handlers import admission as room
from plimsoll.handlers.admission import Admission, serve_admission
from plimsoll.kube.certificates import made
from plimsoll.kube.errors import Unreachable
from plimsoll.kube.rights import User
from plimsoll.planning.plan import Outcome, Plan
from plimsoll.reconcile.admission import Named
from plimsoll.reconcile.decide import foreseen
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.models import MODEL, Found, Missing
from plimsoll.reconcile.models import Models as Hub
from plimsoll.reconcile.seen import Seen
from tests.planning.asking import inventory, pool
from tests.reconcile.test_known_models import CLAIM, kept


@pytest.fixture(autouse=True)
def _a_busy_machine_is_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds that an API server waits may pass here before the first plan is made: what it needs is read and compiled then."""
    monkeypatch.setattr(room, "ANSWER_SECONDS", 600.0)
    monkeypatch.setattr(room, "READ_SECONDS", 600.0)
    monkeypatch.setattr(room, "MODEL_SECONDS", 600.0)


class Models:
    """`slow` never answers; what lies on a claim is nothing that the operator reads."""

    def __init__(self, *, slow: bool = False) -> None:
        self.slow = slow

    async def look(self, spec: LLMDeploymentSpec) -> Mapping[str, Found]:
        if self.slow:
            await asyncio.Event().wait()
        if spec.model.scheme == "pvc":
            return {MODEL: Missing("only a pod sees it", elsewhere=True)}
        found = lookup(spec.model.source)
        assert found is not None
        return {MODEL: found}


class World:
    def __init__(self, *, slow: bool = False, told: Mapping[str, Kept] | None = None) -> None:
        self.models = Models(slow=slow)
        self.config = OperatorConfig()
        self.learned = NOTHING

        self.told = told or {}

    async def kept(self, key: str) -> Kept:
        return self.told.get(key, Kept())

    def now(self) -> float:
        return 0.0

    def capabilities(self) -> frozenset[tuple[str, str]]:
        return frozenset()


class Rights:
    """Answers once it may: `answers` is set at the start."""

    def __init__(self, *, lacks: bool = False, error: Exception | None = None) -> None:
        self.lacks, self.error = lacks, error
        self.asked: list[tuple[str, str, tuple[Named, ...]]] = []
        self.answers = asyncio.Event()
        self.answers.set()

    async def lacking(self, user: User, namespace: str, things: Sequence[Named]) -> tuple[Named, ...]:
        self.asked.append((user.name, namespace, tuple(things)))
        await self.answers.wait()
        if self.error is not None:
            raise self.error
        return tuple(things) if self.lacks else ()


def desk(
    *,
    slow: bool = False,
    rights: Rights | None = None,
    namespaces: tuple[str, ...] = (),
    told: Mapping[str, Kept] | None = None,
) -> Admission:
    fleet: Inventory = inventory(pool())

    def seen(key: str, selector: Mapping[str, str]) -> Inventory:
        return fleet

    world = World(slow=slow, told=told)
    return Admission(world, rights or Rights(), inventory=seen, namespaces=namespaces)  # type: ignore[arg-type]


def request(spec: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    body = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "LLMDeployment",
        "metadata": {"name": "chat"},
        "spec": {
            "model": {"source": "hf://Qwen/Qwen3-8B"},
            "workload": {"contextTokens": 8192},
            **(spec or {}),
        },
    }
    return {
        "uid": "7",
        "kind": {"group": "plimsoll.dev", "version": "v1alpha1", "kind": "LLMDeployment"},
        "operation": "CREATE",
        "namespace": "team-a",
        "userInfo": {"username": "alice", "groups": ["people"], "extra": {"scope": ["all"]}},
        "object": body,
        **others,
    }


UNSAFE = {"engine": {"version": "0.10.0"}}
ENDING = {
    **request(UNSAFE)["object"],
    "metadata": {"name": "chat", "deletionTimestamp": "2026-01-01T00:00:00Z"},
}


def answer(asked: Mapping[str, Any], admission: Admission | None = None) -> dict[str, Any]:
    admission = admission or desk()

    async def run() -> dict[str, Any]:
        try:
            return await admission.answer(asked)
        finally:
            admission.close()
            await asyncio.sleep(0)

    return asyncio.run(run())


def test_what_is_fine_is_let_in() -> None:
    assert answer(request()) == {"uid": "7", "allowed": True}


def test_what_may_not_be_is_turned_down_in_kubernetes_words() -> None:
    found = answer(request(UNSAFE))
    assert found["allowed"] is False
    assert (found["status"]["code"], found["status"]["reason"]) == (403, "Forbidden")
    assert found["status"]["message"].startswith("engine.version ('0.10.0'): must be at least 0.18.0")


@pytest.mark.parametrize(
    "others",
    [
        {"operation": "DELETE"},
        {"operation": "UPDATE", "subResource": "status"},
        {"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}},
        {"object": ENDING, "operation": "UPDATE"},
        {"namespace": "not-watched"},
    ],
    ids=["a deletion", "the status", "another kind", "what ends", "a namespace that nobody watches"],
)
def test_what_is_none_of_its_business_is_let_in(others: dict[str, Any]) -> None:
    asked = request(UNSAFE, **others)
    assert answer(asked, desk(namespaces=("team-a",)))["allowed"] is True


def test_a_name_that_is_still_to_be_made_is_judged_by_its_beginning() -> None:
    asked = request(UNSAFE)
    asked["object"]["metadata"] = {"generateName": "chat-"}
    assert answer(asked)["allowed"] is False


def test_what_a_newer_schema_let_through_is_let_in_and_told() -> None:
    found = answer(request({"replicas": "many"}))
    assert found["allowed"] is True
    assert "spec.replicas" in found["warnings"][0]


def test_rights_are_asked_for_the_user_of_the_request_and_for_what_is_new() -> None:
    rights = Rights(lacks=True)
    naming = {"model": {"source": "hf://Qwen/Qwen3-8B", "tokenSecret": {"name": "hub"}}}
    found = answer(request(naming), desk(rights=rights))
    assert "'alice' may neither get this Secret" in found["status"]["message"]
    assert rights.asked == [("alice", "team-a", (Named("spec.model.tokenSecret.name", "secrets", "hub"),))]
    asked = request(naming, operation="UPDATE", oldObject=request(naming)["object"])
    assert answer(asked, desk(rights=rights))["allowed"] is True


def test_it_is_planned_while_the_api_server_says_what_the_user_may_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rights = Rights()
    rights.answers.clear()
    admission = desk(rights=rights)

    async def run() -> dict[str, Any]:
        loop = asyncio.get_running_loop()

        def planned(seen: Seen) -> Plan:
            # Only once there is a plan the API server answers.
            made = foreseen(seen)
            loop.call_soon_threadsafe(rights.answers.set)
            return made

        monkeypatch.setattr(room, "foreseen", planned)
        try:
            async with asyncio.timeout(60):
                return await admission.answer(request())
        finally:
            admission.close()

    assert asyncio.run(run())["allowed"] is True


def test_what_is_read_and_compiled_but_once_is_so_before_anybody_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that nobody asks for goes the whole way: it fits, and its pods are written down."""
    made: list[Plan] = []

    def planned(seen: Seen) -> Plan:
        made.append(foreseen(seen))
        return made[-1]

    monkeypatch.setattr(room, "foreseen", planned)
    admission = desk()
    admission._world.models = Hub(Resolver(), lambda: 0.0)

    async def run() -> None:
        try:
            await admission.warm()
        finally:
            admission.close()

    asyncio.run(run())
    assert [one.outcome for one in made] == [Outcome.FITS]


def test_a_model_that_a_pod_told_of_is_judged_like_any_other() -> None:
    asked = request({"model": {"source": CLAIM}})
    assert "only a pod sees it" in str(answer(asked)["warnings"])
    admission = desk(told={"team-a/chat": Kept(models=kept())})
    assert answer(asked, admission) == {"uid": "7", "allowed": True}


def test_a_hub_that_takes_long_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MODEL_SECONDS", 0.01)
    found = answer(request(), desk(slow=True))
    assert found["allowed"] is True
    assert "still being read" in found["warnings"][0]
    assert answer(request(UNSAFE), desk(slow=True))["allowed"] is False


def test_a_thousand_at_once_are_not_planned_one_by_one_but_none_that_may_not_be_is_let_in() -> None:
    async def run() -> list[dict[str, Any]]:
        admission = desk()
        try:
            asked = [request(UNSAFE if number % 10 == 0 else {}) for number in range(200)]
            return await asyncio.gather(*(admission.answer(one) for one in asked))
        finally:
            admission.close()

    found = asyncio.run(run())
    assert [one["allowed"] for one in found] == [number % 10 != 0 for number in range(200)]
    told = [one.get("warnings", [""])[0] for one in found]
    assert told[1] == ""
    assert "many resources come at once" in told[-1]


BEGUN = f"POST {room.PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{{".encode()


def posted(admission: Admission, *bodies: bytes, folder: Path, slow: int = 0) -> list[tuple[int, str]]:
    """As the API server posts them, after others that never end theirs."""
    pair, authority = made(("127.0.0.1",), datetime.now(UTC))  # noqa: TID251 - a TLS library has no other clock

    async def run() -> list[tuple[int, str]]:
        (folder / "crt").write_text(pair.certificate)
        (folder / "key").write_text(pair.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "crt", folder / "key")
        runner = await serve_admission(admission, "127.0.0.1", 0, context)
        found = []
        try:
            url = f"https://127.0.0.1:{runner.addresses[0][1]}{room.PATH}"
            trust = ssl.create_default_context(cadata=authority)
            others = [await asyncio.open_connection(*runner.addresses[0][:2], ssl=trust) for _ in range(slow)]
            for _, writer in others:
                writer.write(BEGUN)
                await writer.drain()
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
                for body in bodies:
                    headers = {"Content-Type": "application/json"}
                    async with session.post(url, data=body, ssl=trust, headers=headers) as answered:
                        found.append((answered.status, await answered.text()))
            for _, writer in others:
                writer.close()
            # Connections end a moment after they were ended, on both sides.
            async with asyncio.timeout(60):
                while runner.server is not None and runner.server.connections:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
        finally:
            await runner.cleanup()
            admission.close()
        return found

    return asyncio.run(run())


def review(asked: Mapping[str, Any]) -> bytes:
    return json.dumps({"apiVersion": room.REVIEW, "kind": "AdmissionReview", "request": asked}).encode()


def test_it_speaks_admission_reviews_and_counts_them(tmp_path: Path) -> None:
    admission = desk()
    (fine, wrong) = posted(admission, review(request()), review(request(UNSAFE)), folder=tmp_path)
    assert (fine[0], json.loads(fine[1])["response"]["allowed"]) == (200, True)
    assert (wrong[0], json.loads(wrong[1])["response"]["allowed"]) == (200, False)
    assert json.loads(wrong[1])["apiVersion"] == "admission.k8s.io/v1"
    assert admission.counts.answers == {"allowed": 1, "denied": 1}


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"not json", b"[" * 100_000, b"{}", b'{"apiVersion": "admission.k8s.io/v1", "request": []}', review({"uid": "1", **{
        key: value for key, value in request().items() if key != "object"}})],
    ids=["nothing", "a list", "no JSON", "deep", "no review", "no request", "no object"],
)  # fmt: skip
def test_what_is_no_review_is_an_error_that_says_so(tmp_path: Path, body: bytes) -> None:
    ((status, text),) = posted(desk(), body, folder=tmp_path)
    assert status == 400
    assert text


@pytest.mark.parametrize(
    "error", [Unreachable("no answer"), TimeoutError()], ids=["no API server", "too late"]
)
def test_what_cannot_be_judged_is_an_error_so_that_the_failure_policy_decides(
    tmp_path: Path, error: Exception
) -> None:
    admission = desk(rights=Rights(error=error))
    ((status, text),) = posted(admission, review(request()), folder=tmp_path)
    assert status == 503
    assert text
    assert admission.counts.answers == {"error": 1}


def test_those_who_send_slowly_keep_nobody_from_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "AT_ONCE", 2)
    monkeypatch.setattr(room, "ANSWER_SECONDS", 20.0)
    ((status, _),) = posted(desk(), review(request()), folder=tmp_path, slow=6)
    assert status == 200


@pytest.mark.parametrize(("limit", "status"), [("MOST_HELD", 503), ("LONGEST_BODY", 413)])
def test_a_body_takes_no_more_room_than_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, status: int
) -> None:
    monkeypatch.setattr(room, limit, 0)
    assert [each for each, _ in posted(desk(), *2 * [review(request())], folder=tmp_path)] == 2 * [status]
