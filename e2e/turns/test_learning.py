"""What an engine reports of its start, and what a ramp measured, reach their own status, the object of what was learned, and the
next plan of the model."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from cluster.api import ApiError
from common import eventually
from plimsoll import names
from plimsoll.cli import ramp_record
from plimsoll.cli.ramp_record import recorder_of
from plimsoll.facts.learned import Learned, import_learned
from plimsoll.load.conclusions import Asked, Ramp, Step, conclude
from plimsoll.load.result import Counts, LengthsSeen, RatesSeen, Result
from plimsoll.load.sketch import Spread
from plimsoll.planning.plan import Plan
from turns.running import Desk, Operator

GIB: Final = 2**30
OFF: Final = 3 * GIB
"""By how much less is left for the cache than the formulas say."""


class Supervisor(ThreadingHTTPServer):
    """One side port for all pods, on this machine."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.report: dict[str, Any] = {"schema": 1, "state": "starting", "phase": "weights", "measured": {}}


class Answers(BaseHTTPRequestHandler):
    server: Supervisor

    def do_GET(self) -> None:
        body = json.dumps(self.server.report).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def supervisor() -> Iterator[Supervisor]:
    server = Supervisor()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def config(folder: Path) -> Path:
    file = folder / "admin.json"
    said = {
        "registry": {"runtimeImage": "registry.example/plimsoll:1"},
        "trust": {"podPatches": {"allow": ["/spec/*"]}},
    }
    file.write_text(json.dumps({"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND, **said}))
    return file


def serve(desk: Desk, name: str, server: Supervisor) -> dict[str, Any]:
    """A deployment that serves, whose pod is found where the supervisor listens; its plan in short."""
    port = {
        "op": "add",
        "path": "/spec/containers/0/ports/-",
        "value": json.dumps(
            {"name": "runtime", "containerPort": server.server_address[1], "protocol": "TCP"}
        ),
    }
    desk.apply(name, podPatches=[port])
    assert eventually(lambda: desk.condition("Ready", name) == ("True", "Serving"))
    plan: dict[str, Any] = desk.get(name)["status"]["plan"]
    return plan


def found_here(desk: Desk, name: str) -> None:
    """A simulated pod has an address that nobody listens at."""
    for pod in desk.pods():
        if pod["metadata"]["labels"][names.LABEL_DEPLOYMENT] == name:
            path = f"/api/v1/namespaces/{desk.namespace}/pods/{pod['metadata']['name']}/status"
            address = {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
            desk.cluster.api.patch(path, {"status": address})


def accuracy(desk: Desk, name: str) -> dict[str, Any]:
    found: dict[str, Any] = desk.get(name)["status"].get("accuracy") or {}
    return found


def source(plan: dict[str, Any]) -> str:
    return str(next(term["source"] for term in plan["ledger"] if term["name"] == "activation"))


def kept(desk: Desk) -> Learned:
    path = f"/api/v1/namespaces/{desk.namespace}/configmaps/{names.LEARNED}"
    try:
        return import_learned(desk.cluster.api.get(path)["data"][names.LEARNED_KEY])
    except ApiError:
        return Learned()


def learned(desk: Desk) -> dict[str, int]:
    """Bytes by term, as they are kept."""
    return {one.term: one.bytes for one in kept(desk).residuals}


def starts(desk: Desk) -> int:
    return max((one.starts for one in kept(desk).residuals), default=0)


def test_a_second_deployment_of_a_model_profits_from_the_first_one_s_start(
    place: Desk, tmp_path: Path
) -> None:
    args = ("--standalone", f"--lease-namespace={place.namespace}", f"--config={config(tmp_path)}")
    with supervisor() as server, Operator(place.cluster, tmp_path, args=args) as operator:
        plan = serve(place, "first", server)
        assert source(plan) != "learned"
        predicted = plan["kvTokens"]
        room = next(term["bytes"] for term in plan["ledger"] if term["name"] == "kv")
        tokens = round(predicted * (room - OFF) / room)
        server.report |= {"state": "serving", "measured": {"kvBytes": room - OFF, "kvTokens": tokens}}
        found_here(place, "first")
        assert eventually(lambda: accuracy(place, "first").get("kvTokensMeasured") == tokens), operator.tail()
        assert float(accuracy(place, "first")["errorPercent"]) > 2
        assert place.condition("Fits", "first") == ("True", "Measured")
        assert eventually(lambda: learned(place).get("activation", 0) > 0), operator.tail()
        assert abs(learned(place)["activation"] - OFF) < GIB // 8

        operator.restart()
        plan = serve(place, "second", server)
        assert source(plan) == "learned"
        found_here(place, "second")
        assert eventually(lambda: accuracy(place, "second").get("kvTokensMeasured") == tokens), (
            operator.tail()
        )
        assert abs(float(accuracy(place, "second")["errorPercent"])) < 0.5
        assert eventually(lambda: starts(place) == 2), operator.tail()


SLOWER: Final = 1.5
"""Times as long as the model says, by a ramp that was never run: no engine answers behind simulated pods."""


def ramped(plan: Plan) -> Ramp:
    chosen = plan.sets[0]
    assert chosen.performance is not None
    load, said = chosen.load, chosen.performance

    def spread(value: float) -> Spread:
        return Spread(count=500, mean=value, p50=value, p90=value, p95=value, p99=value, max=value)

    result = Result(
        url="",
        model="",
        pattern="",
        seed=0,
        seconds=30.0,
        interrupted=False,
        counts=Counts(sent=50, ok=50, failed=0, cut=0, refused=0, timed_out=0, unfinished=0, not_sent=0),
        rates=RatesSeen(
            requests=1.0,
            good_requests=None,
            input_tokens=None,
            output_tokens=said.output_tokens_per_second,
            in_flight_mean=load.concurrency * plan.replicas,
            in_flight_max=load.concurrency * plan.replicas,
        ),
        ttft_ms=spread(SLOWER * said.ttft_ms.mid),
        itl_ms=None,
        tpot_ms=spread(SLOWER * said.tpot_ms.mid),
        e2e_ms=None,
        longest_gap_ms=None,
        lengths=LengthsSeen(
            counted_by="server",
            input_asked=None,
            input_mean=load.input_tokens,
            input_error_percent=None,
            output_asked=None,
            output_mean=load.output_tokens,
            tokens_per_event=None,
        ),
        late_ms=None,
        lag_ms=None,
        promises=(),
        problems=(),
        notes=(),
    )
    asked = Asked(url="", model="", closed_loop=True, input_tokens="", output_tokens="", seed=0)
    return conclude(
        asked, [Step(load=float(load.concurrency), result=result, engine=None)], interrupted=False
    )


def pinned(desk: Desk, name: str) -> Plan:
    found = (
        one.get("data", {})
        for one in desk.items("v1/configmaps")
        if one["metadata"]["name"] == f"{name}-plan"
    )
    return Plan.from_bytes(next(found)[names.PLAN_KEY].encode())


def told(desk: Desk, name: str) -> dict[str, Any]:
    found: dict[str, Any] = desk.get(name)["status"].get("ramp") or {}
    return found


def events(desk: Desk) -> set[str]:
    return {str(one["reason"]) for one in desk.items("events.k8s.io/v1/events")}


def test_a_ramp_that_was_recorded_is_in_the_next_plan_of_its_model(
    place: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a person's command finds the cluster; a busy machine's operator may take its time.
    where = "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION"
    monkeypatch.setattr(where, str(place.cluster.kubeconfig))
    monkeypatch.setattr(ramp_record, "PATIENCE_SECONDS", 900.0)
    args = ("--standalone", f"--lease-namespace={place.namespace}")
    with Operator(place.cluster, tmp_path, args=args) as operator:
        place.apply("first", topology={"tensor": 1})
        assert place.says("Ready", "True", "Serving", "first"), operator.tail()
        before = pinned(place, "first")
        serves = place.deployments()
        recorder_of(place.get("first"), None, elsewhere=False).record(ramped(before), 0)
        taken = told(place, "first")
        assert taken["taken"] is True
        assert f"{SLOWER:.2f} times as long as the model says" in taken["message"]
        (speed,) = kept(place).speeds  # by now: a crash after the word that it was taken would lose it
        assert speed.tpot == pytest.approx(SLOWER, rel=0.01)

        # Slower than was thought, it would else be planned for a GPU that nobody has measured.
        place.apply("second", topology={"tensor": 1, "gpuProducts": [before.sets[0].hardware.gpu]})
        assert place.says("Ready", "True", "Serving", "second"), operator.tail()
        answer, slower = before.sets[0].performance, pinned(place, "second").sets[0].performance
        assert answer is not None
        assert slower is not None
        assert answer.learned is None
        assert slower.learned is not None
        assert slower.tpot_ms.mid > 1.1 * answer.tpot_ms.mid

        bad = {"metadata": {"annotations": {names.ANNOTATION_RAMP: "no record"}}}
        place.cluster.api.patch(place.path("first"), bad)
        assert eventually(lambda: told(place, "first").get("taken") is False), operator.tail()
        assert kept(place).speeds == (speed,)
        assert eventually(lambda: {"RampTaken", "RampRefused"} <= events(place)), operator.tail()
        assert serves.items() <= place.deployments().items(), "what serves is not touched"
        assert pinned(place, "first").sets == before.sets


NO_ROOM: Final = {"word": "NoKvRoom", "message": "no room for the cache", "remedy": "fewer sequences at once"}
DIES: Final = {
    "e2e.plimsoll.dev/dies": "exit",
    "e2e.plimsoll.dev/back-off": "1s",
    "e2e.plimsoll.dev/starts-after": "1h",
    "e2e.plimsoll.dev/message": json.dumps(NO_ROOM),
}


def test_a_start_without_room_is_tried_once_more_with_less_and_then_waits_for_a_person(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    planned = desk.get()["status"]["plan"]["maxSequences"]
    desk.apply(workload={"contextTokens": 4096}, podAnnotations=DIES, rollout={"rollback": "manual"})
    assert desk.says("Stalled", "True", "NoKvRoom")
    message = desk.message("Stalled")
    assert "and that failed too" in message
    assert NO_ROOM["remedy"] in message
    status = desk.get()["status"]
    assert status["safeRetry"] is True
    # Whoever fixes the cause finds the smaller setting in use, and says so.
    desk.apply(workload={"contextTokens": 4096}, rollout={"rollback": "manual"})
    assert desk.says("Ready", "True", "Serving")
    assert desk.condition("Degraded") == ("True", "SafeRetry")
    assert "engine.maxSequences" in desk.message("Degraded")
    assert desk.get()["status"]["plan"]["maxSequences"] < planned
    desk.apply(workload={"contextTokens": 5120}, rollout={"rollback": "manual"})
    assert eventually(lambda: desk.condition("Degraded") == ("False", "Healthy"))
    assert "safeRetry" not in desk.get()["status"]
