"""The few lines of Python that pods carry, run as the kubelet would run them; and times that must add up."""

import http.server
import json
import subprocess
import sys
import threading

import pytest

from plimsoll.engines.command import PORT
from plimsoll.render.probes import AFTER_DRAIN_SECONDS, LET_GO_SECONDS, SERVES
from plimsoll.render.start import PYTHON, SEQUENCE
from tests.render.building import engine_of, frozen, resource
from tests.render.cases import GROUP, entry


class Engine(http.server.BaseHTTPRequestHandler):
    status: int = 200
    body: bytes = b"{}"
    key: str | None = None

    def do_GET(self):
        answers = self.key is None or self.headers["Authorization"] == f"Bearer {self.key}"
        self.send_response(self.status if answers and self.path == "/v1/models" else 401)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        pass


@pytest.fixture
def port():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def asked(port, name, key=None):
    words = [sys.executable, *PYTHON[1:], SERVES, str(port), "http", name]
    environment = {} if key is None else {"VLLM_API_KEY": key}
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment, timeout=60)


def models(*names):
    return json.dumps({"data": [{"id": name} for name in names]}).encode()


@pytest.mark.parametrize(
    ("answer", "name", "said"),
    [
        ((200, models("base", "chat")), "chat", None),
        ((200, models("chat")), "Chat", "not 'Chat'"),
        ((200, models()), "chat", "lists []"),
        ((503, models("chat")), "chat", "answers 503"),
        ((200, b"not json"), "chat", "cannot be read"),
        ((200, b"{}"), "chat", "cannot be read"),
    ],
)
def test_a_pod_serves_when_its_name_is_listed(monkeypatch, port, answer, name, said):
    monkeypatch.setattr(Engine, "status", answer[0])
    monkeypatch.setattr(Engine, "body", answer[1])
    done = asked(port, name)
    assert (done.returncode == 0) == (said is None)
    assert (said or "") in done.stderr
    assert "Traceback" not in done.stderr


def test_the_key_of_the_api_is_shown_and_never_printed(monkeypatch, port):
    monkeypatch.setattr(Engine, "body", models("chat"))
    monkeypatch.setattr(Engine, "key", "canary")
    assert asked(port, "chat", "canary").returncode == 0
    refused = asked(port, "chat", "other-canary")
    assert refused.returncode
    assert "canary" not in refused.stdout + refused.stderr


def test_nobody_at_the_port_is_said_in_a_line():
    done = asked(1, "chat")
    assert done.returncode
    assert done.stderr.startswith("/v1/models cannot be read: ConnectionRefusedError")


def run(*words):
    program = [sys.executable, *PYTHON[1:], SEQUENCE, *words]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)


def test_one_program_runs_before_another_takes_its_place():
    done = run("--first", "2", "echo", "$HOME one", "--then", "echo", "--first", "two")
    assert done.stdout == "$HOME one\n--first two\n"


def test_a_first_program_that_fails_ends_it():
    done = run("--first", "1", "false", "--then", "echo", "never")
    assert done.returncode
    assert "never" not in done.stdout


def pod_of(chosen, which="leader", **said):
    return getattr(frozen(resource(**said), chosen=chosen), which)["spec"]


@pytest.mark.parametrize("drain", [0, 30, 3600])
def test_the_grace_period_holds_letting_go_draining_and_ending(drain):
    pod = pod_of(entry(), rollout={"drainSeconds": drain})
    words = pod["containers"][0]["args"]
    held = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert words[words.index("--shutdown-timeout") + 1] == str(drain)
    assert held == LET_GO_SECONDS
    assert pod["terminationGracePeriodSeconds"] == held + drain + AFTER_DRAIN_SECONDS


def test_pods_that_only_compute_outlive_the_drain_of_their_leader():
    worker = pod_of(GROUP, "worker", rollout={"drainSeconds": 90})
    held = worker["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert LET_GO_SECONDS + 90 <= held < worker["terminationGracePeriodSeconds"]


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ({}, 958),  # 16.4 GB at 50 MB/s, 300 s, and 330 s for a hub that has a start wait
        ({"model": {"source": "pvc://claim/Qwen/Qwen3-8B"}}, None),
        ({"storage": {"weights": {"image": {"reference": "r/x"}}}}, 382),
        ({"rollout": {"deadlineSeconds": 3600}}, 3600),
        ({"rollout": {"deadlineSeconds": 60}}, 958),
    ],
)
def test_a_start_may_take_as_long_as_its_bytes_and_its_owner_say(said, seconds):
    revision = frozen(resource(**said), chosen=entry())
    engine = engine_of(revision.leader)
    probe = engine["startupProbe"]
    variables = {one["name"]: one.get("value") for one in engine["env"]}
    assert seconds is None or revision.start_seconds == seconds
    assert 0 <= probe["failureThreshold"] * probe["periodSeconds"] - revision.start_seconds < 10
    assert variables["VLLM_ENGINE_READY_TIMEOUT_S"] == str(revision.start_seconds)


def test_with_a_certificate_every_probe_speaks_tls():
    engine = engine_of(frozen(resource(networking={"tlsSecret": "cert"}), chosen=entry()).leader)
    assert (
        engine["startupProbe"]["httpGet"]["scheme"] == engine["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"
    )
    assert engine["readinessProbe"]["exec"]["command"][-3:] == [str(PORT), "https", "Qwen/Qwen3-8B"]
