"""`plimsoll bench` as a user runs it: against a server on a port, with other tools' words, and interrupted."""

import json
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plimsoll.cli import drawing
from plimsoll.cli.bench_report import bench_report
from plimsoll.load.result import Problem, Result, data_of
from plimsoll.load.slo import Promise
from tests.cli.endpoints import listening
from tests.cli.running import plimsoll
from tests.load.known_server import Behaviour
from tests.load.results import result

AT_ONCE = Behaviour(ttft_s=0.0, gap_s=0.0)


def shown(value: Result, capsys: pytest.CaptureFixture[str]) -> str:
    drawing.show(bench_report(value))
    return capsys.readouterr().out


def test_a_load_is_measured_and_shown_as_a_table():
    with listening(AT_ONCE) as (url, server):
        ran = plimsoll("bench", url, "--concurrency", "2", "--requests", "6", "--output-tokens", "5")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"tiny at {url}: 2 at once, ")
    for words in ("6 sent, 6 ok", "TTFT ms", "ITL ms", "512 + 5 asked, 512 + 5 delivered"):
        assert words in ran.out
    assert len(server.times) == 6
    assert {body["max_tokens"] for body in server.bodies} == {5}


def test_json_has_every_key_and_nothing_else_is_on_stdout():
    with listening(AT_ONCE) as (url, _):
        ran = plimsoll("bench", url, "--concurrency", "1", "--requests", "3", "--json")
    assert json.loads(ran.out).keys() == data_of(result()).keys()


def test_the_words_of_other_tools_are_taken():
    with listening(AT_ONCE) as (url, server):
        ran = plimsoll(
            *(
                "bench",
                "--base-url",
                f"{url}/v1",
                "--model=tiny",
                "--max-concurrency",
                "3",
                "--num-prompts=7",
            ),
            *(
                "--random-input-len",
                "40",
                "--random_output_len",
                "4",
                "--goodput",
                "ttft:60000",
                "-o",
                "yaml",
            ),
        )
    assert ran.code == 0
    assert (len(server.times), {body["max_tokens"] for body in server.bodies}) == (7, {4})
    assert "pattern: 3 at once" in ran.out
    assert "target_ms: 60000" in ran.out


def test_a_key_and_headers_go_with_every_request(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    with listening(AT_ONCE) as (url, server):
        ran = plimsoll("bench", url, "--concurrency", "1", "--requests", "1", "--header", "X-Tenant: a")
    assert ran.code == 0
    assert {(seen["Authorization"], seen["X-Tenant"]) for seen in server.headers} == {
        ("Bearer from-the-environment", "a")
    }


def test_a_key_from_a_file_has_the_end_of_its_line_taken_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", " from-a-file\r\n")
    with listening(AT_ONCE) as (url, server):
        assert plimsoll("bench", url, "--concurrency", "1", "--requests", "1").code == 0
    assert {seen["Authorization"] for seen in server.headers} == {"Bearer from-a-file"}


def test_two_runs_of_a_seed_send_other_texts_at_the_same_lengths():
    with listening(AT_ONCE) as (url, server):
        for _ in range(2):
            server.probes = 0
            line = (
                "--concurrency",
                "1",
                "--requests",
                "4",
                "--output-tokens",
                "2..20",
                "--input-tokens",
                "9..90",
            )
            assert plimsoll("bench", url, *line).code == 0
    texts = [body["messages"][0]["content"] for body in server.bodies]
    assert len(set(texts)) == 8
    sizes = [(len(text.split()), body["max_tokens"]) for text, body in zip(texts, server.bodies, strict=True)]
    assert sizes[:4] == sizes[4:]


def test_a_trace_is_played(tmp_path: Path):
    file = tmp_path / "trace.csv"
    file.write_text("arrival_s,input_tokens,output_tokens\n0,20,3\n0,40,4\n0.01,30,5\n")
    with listening(AT_ONCE) as (url, server):
        ran = plimsoll("bench", url, "--trace", str(file), "--json", "--endpoint-type", "completions")
    assert ran.code == 0
    assert sorted(body["max_tokens"] for body in server.bodies) == [3, 4, 5]
    assert all("prompt" in body for body in server.bodies)
    assert json.loads(ran.out)["counts"]["ok"] == 3


@pytest.mark.parametrize(
    ("arguments", "behaviour", "code"),
    [
        (("--slo", "ttft=60000"), AT_ONCE, 0),
        (("--slo", "ttft=0.001"), AT_ONCE, 2),
        ((), Behaviour(ttft_s=0, gap_s=0, fate=lambda _: "500"), 2),
    ],
)
def test_the_exit_code_says_whether_targets_were_kept(
    arguments: tuple[str, ...], behaviour: Behaviour, code: int
):
    with listening(behaviour) as (url, _):
        assert plimsoll("bench", url, "--rate", "50", "--requests", "4", *arguments).code == code


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("http://127.0.0.1:9",), "give one of --concurrency N, --rate R and --trace FILE"),
        (("http://127.0.0.1:9", "--rate", "1", "--concurrency", "1"), "give one of"),
        (("http://127.0.0.1:9", "--rate", "inf"), "'inf' is no number above 0"),
        (("http://127.0.0.1:9", "--rate", "0"), "'0' is no number above 0"),
        (("http://127.0.0.1:9", "--concurrency", "1", "--burstiness", "2"), "give it with --rate"),
        (("http://127.0.0.1:9", "--rate", "1", "--trace-speed", "2"), "give it with --trace"),
        (("http://127.0.0.1:9", "--rate", "1", "--duration", "1x"), "write 60, 90s, 5m or 2h"),
        (("http://127.0.0.1:9", "--rate", "1", "--duration", "5", "--warmup", "5"), "is all warm-up"),
        (("http://127.0.0.1:9", "--rate", "1", "--input-tokens", "many"), "--input-tokens: 'many'"),
        (("http://127.0.0.1:9", "--rate", "1", "--slo", "fast"), "--slo: 'fast'"),
        (
            ("http://127.0.0.1:9", "--rate", "1", "--prefix-tokens", "512"),
            "leave a prompt nothing of its own",
        ),
        (("http://127.0.0.1:9", "--rate", "1", "--header", "x"), "write 'NAME: VALUE'"),
        (
            ("http://127.0.0.1:9", "--rate", "1", "--api-key", "first\nsecond"),
            "error: --api-key: holds what cannot be printed, as the end of a line; give the key alone",
        ),
        (
            ("http://127.0.0.1:9", "--rate", "1"),
            "http://127.0.0.1:9/v1/models does not answer: Connection refused",
        ),
        (("chat", "--rate", "1"), "'chat' is no address of an endpoint; write http://HOST:PORT"),
        (("http://a..b", "--rate", "1"), "'http://a..b' is no address of an endpoint"),
        (("http://[::1", "--rate", "1"), "'http://[::1' is no address of an endpoint"),
        (("http://localhost:99999", "--rate", "1"), "'http://localhost:99999' is no address of an endpoint"),
        (("http://127.0.0.1:9", "--trace", "/no/such"), "--trace: /no/such: cannot be read: No such file"),
        (("http://127.0.0.1:9", "--trace", "-"), "is looked at before it is played, so name a file"),
    ],
)
def test_a_wrong_question_is_told_and_ends_with_3(arguments: tuple[str, ...], said: str):
    ran = plimsoll("bench", *arguments)
    assert (ran.code, ran.out) == (3, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_the_unit_that_is_taken_for_a_trace_s_times_is_told_before_it_is_played(tmp_path: Path):
    file = tmp_path / "trace.csv"
    file.write_text("timestamp,input_length,output_length\n0.5,20,3\n0.75,30,5\n")
    ran = plimsoll("bench", "http://127.0.0.1:9", "--trace", str(file))
    assert "nothing says what timestamp counts: seconds are taken, as it holds fractions" in ran.err
    assert ran.err.index("seconds are taken") < ran.err.index("/v1/models does not answer")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x,20,3", "line 2002: arrival_s is 'x'; it must be seconds"),
        ("1999,20,3,4", "line 2002: has more fields than the head names"),
        ("0.5,20,3", "line 2002: is before the line above; sort it by time"),
    ],
)
def test_a_line_that_cannot_be_played_is_told_before_any_load_however_far_it_is(
    line: str, said: str, tmp_path: Path
):
    (file := tmp_path / "trace.csv").write_text(
        REQUESTS + "".join(f"{at},20,3\n" for at in range(2, 2000)) + line
    )
    ran = plimsoll("bench", "http://127.0.0.1:9", "--trace", str(file))
    assert (ran.code, ran.out) == (3, "")
    assert f"error: --trace: {file}, {said}" in ran.err


TIMES = "arrival_s\n0\n1\n"
REQUESTS = "arrival_s,input_tokens,output_tokens\n0,20,3\n1,30,5\n"


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (("--rate", "1", "--input-tokens", "501..1500"), "note: --prefix-tokens: 1000 are a part of --input-tokens 501..1500; 50%"),
        (("--rate", "1", "--input-tokens", "1001"), ""),
        (("--trace", TIMES), "error: --prefix-tokens: 1000 are a part of --input-tokens 512, and leave"),
        (("--trace", REQUESTS), "error: --prefix-tokens: the trace has lengths of its own"),
    ],
)  # fmt: skip
def test_a_beginning_that_leaves_prompts_nothing_else_is_told_before_any_load(
    load: tuple[str, ...], said: str, tmp_path: Path
):
    (file := tmp_path / "trace.csv").write_text(load[1])
    words = ("--trace", str(file)) if load[0] == "--trace" else load
    ran = plimsoll("bench", "http://127.0.0.1:9", *words, "--prefix-tokens", "1000")
    assert ran.code == 3
    assert said in ran.err if said else "--prefix-tokens" not in ran.err


@pytest.mark.parametrize(
    ("option", "value"), [("--input-tokens", "512"), ("--output-tokens", "2000"), ("--prefix-tokens", "1")]
)
def test_lengths_beside_those_of_a_trace_are_refused_and_not_passed_over(
    option: str, value: str, tmp_path: Path
):
    (file := tmp_path / "trace.csv").write_text(REQUESTS)
    ran = plimsoll("bench", "http://127.0.0.1:9", "--trace", str(file), option, value)
    assert (ran.code, ran.out) == (3, "")
    assert f"error: {option}: the trace has lengths of its own; leave it out" in ran.err
    file.write_text(TIMES)
    assert (
        "lengths of its own"
        not in plimsoll("bench", "http://127.0.0.1:9", "--trace", str(file), option, value).err
    )


def test_ctrl_c_prints_what_was_measured():
    with listening(Behaviour(ttft_s=0.0, gap_s=0.001)) as (url, server):
        command = [sys.executable, "-c", "from plimsoll.cli.main import main; main()", "bench", url]
        process = subprocess.Popen(
            [*command, "--concurrency", "2", "--duration", "1h", "--output-tokens", "3", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while len(server.times) < 20 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, err) == (130, "")
    data = json.loads(out)
    assert data["interrupted"] is True
    assert data["counts"]["ok"] >= 10


@pytest.mark.parametrize("asked", [("bench", "--rate", "1"), ("ramp",)], ids=["bench", "ramp"])
def test_ctrl_c_is_heard_while_the_endpoint_has_not_answered_yet(asked: tuple[str, ...]):
    """As one that sleeps or is full: a first question may take minutes."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        name, *options = asked
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", "from plimsoll.cli.main import main; main()"),
                *(name, f"http://127.0.0.1:{silent.getsockname()[1]}", *options),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        silent.settimeout(60)
        connection, _ = silent.accept()
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        connection.close()
    assert time.monotonic() - began < 8, "the question itself is given up after ten seconds"
    assert (process.returncode, out, err) == (130, "", "note: stopped by Ctrl-C before there was an answer\n")


def test_what_went_wrong_and_what_to_know_stand_below_the_table(capsys: pytest.CaptureFixture[str]):
    text = shown(
        result(
            bad=3,
            promises=(
                Promise(name="ttft", target_ms=1000, within=0.95),
                Promise(name="itl", target_ms=50, within=None),
            ),
            problems=(Problem(message="503: no seat", times=3),),
            notes=("something to know",),
        ),
        capsys,
    )
    for words in (
        "60 sent, 57 ok, 3 failed",
        "MISSED ttft 1000 ms: 95.00% of requests within; 99% were promised",
        "itl 50 ms: nothing to judge by",
        "503: no seat (3 times)",
        "something to know",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("within", "told"),
    [(0.98996, "MISSED ttft 1000 ms: 98.99%"), (0.99, "KEPT   ttft 1000 ms: 99.00%"), (0.99996, "99.99%")],
)
def test_a_share_is_cut_off_so_that_none_below_the_promise_reads_as_if_it_kept_it(
    within: float, told: str, capsys: pytest.CaptureFixture[str]
):
    promise = Promise(name="ttft", target_ms=1000, within=within)
    assert f"{told} of requests within" in shown(result(promises=(promise,)), capsys)


def test_a_run_in_which_nothing_was_answered_has_no_table(capsys: pytest.CaptureFixture[str]):
    nothing: dict[str, Any] = dict.fromkeys(
        ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms", "longest_gap_ms", "lag_ms", "late_ms")
    )
    assert "TTFT" not in shown(replace(result(done=0), **nothing), capsys)
