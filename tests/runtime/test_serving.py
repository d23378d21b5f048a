"""The supervisor as a process: starts, tells, passes on, waits, ends."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from plimsoll_runtime.drain import Drain
from plimsoll_runtime.said import Said
from plimsoll_runtime.supervisor import Options, Supervisor
from tests.runtime.conftest import Undying


def test_an_engine_that_serves_is_told_of_with_what_it_said_and_measured(supervised):
    supervised.engine(
        "--say=Model loading took 14.99 GiB memory and 3.5 seconds",
        "--say=Available KV cache memory: 51.38 GiB",
    )
    facts = supervised.until("serving")
    assert facts["schema"] == 1
    assert facts["measured"]["weightsBytes"] == round(14.99 * 2**30)
    assert facts["measured"]["kvTokens"] == 16000
    assert facts["measured"]["blockSize"] == 16
    assert facts["measured"]["graphsBytes"] is None
    assert facts["failure"] is None
    assert supervised.ask("/readyz")[0] == 200
    assert 'plimsoll_runtime_state{state="serving"} 1' in supervised.ask("/metrics")[1]


def test_what_the_engine_prints_is_passed_on(supervised):
    supervised.engine("--say=hello ä", "--exit=0")
    supervised.end()
    assert "hello ä\n" in supervised.said()


def test_the_exit_code_is_the_engines_and_the_reason_is_left_for_the_kubelet(supervised):
    supervised.engine("--say=ValueError: No available memory for the cache blocks. Try more.", "--exit=3")
    assert supervised.end() == 3
    failure = supervised.failure()
    assert failure["word"] == "NoKvRoom"
    assert failure["evidence"] == ["ValueError: No available memory for the cache blocks. Try more."]


def test_an_engine_that_is_killed_is_a_failure_that_names_the_signal(supervised):
    supervised.engine(f"--die={signal.SIGSEGV:d}")
    assert supervised.end() == 1
    assert "killed by signal 11" in supervised.failure()["message"]


def test_a_refused_flag_is_named(supervised):
    supervised.engine("--no-such-flag")
    assert supervised.end() == 2
    assert supervised.failure()["message"].endswith("unrecognized arguments: --no-such-flag")


def test_a_program_that_is_not_there_is_said_so(supervised):
    supervised.start("/nowhere/vllm", "serve", "tiny")
    assert supervised.end() == 127
    assert supervised.failure()["word"] == "NoEngine"


def test_no_words_for_an_engine_is_an_error_of_the_command_line(supervised):
    supervised.start()
    assert supervised.end() == 2


def test_other_signals_reach_the_engine(supervised):
    supervised.engine()
    supervised.until("serving")
    supervised.send(signal.SIGUSR1)
    supervised.until_said("told 1")


def test_an_idle_engine_that_is_told_to_end_does_so_and_leaves_no_reason(supervised):
    supervised.engine(own=("--grace=20",))
    supervised.until("serving")
    supervised.send(signal.SIGTERM)
    assert supervised.end() == 0
    assert not supervised.message.exists()


def test_the_engine_is_not_told_to_end_while_an_answer_is_running(supervised):
    supervised.requests.write_text("1")
    supervised.engine(own=("--grace=60",))
    supervised.until("serving")
    supervised.send(signal.SIGTERM)
    facts = supervised.until("draining")
    assert facts["failure"] is None
    assert supervised.ask("/readyz")[0] == 503
    assert supervised.ask("/healthz")[0] == 200
    assert "told to end by 15" not in supervised.said()
    supervised.requests.write_text("0")
    assert supervised.end() == 0
    assert "told to end by 15" in supervised.said()


def test_an_engine_without_metrics_serves_and_ends_in_its_own_way(supervised):
    supervised.engine("--no-metrics", own=("--grace=60",))
    assert supervised.until("serving")["requests"] == {"running": None, "waiting": None}
    supervised.send(signal.SIGTERM)
    assert supervised.end() == 0


def test_what_was_idle_before_the_signal_may_be_busy_now(supervised):
    supervised.engine(own=("--grace=60",))
    supervised.until("serving")
    supervised.requests.write_text("1")
    supervised.send(signal.SIGTERM)
    supervised.until("draining")
    while supervised.facts()["requests"]["running"] != 1:
        assert supervised.process.poll() is None
    assert "told to end by 15" not in supervised.said()
    supervised.requests.write_text("0")
    assert supervised.end() == 0


def test_a_second_signal_to_end_does_not_wait(supervised):
    supervised.requests.write_text("1")
    supervised.engine(own=("--grace=600",))
    supervised.until("serving")
    supervised.send(signal.SIGTERM)
    supervised.until("draining")
    supervised.send(signal.SIGTERM)
    assert supervised.end() == 0


def test_an_engine_that_does_not_end_is_killed_at_the_end_of_the_grace(supervised):
    supervised.engine("--deaf", own=("--grace=2",))
    supervised.until("serving")
    supervised.send(signal.SIGTERM)
    assert supervised.end() == 128 + signal.SIGKILL
    assert not supervised.message.exists()


def test_the_end_of_the_grace_is_told_once_however_long_the_engine_takes_to_die(capfd):
    one, child = Supervisor(Options(("vllm",), {}), Said(("vllm",), 0.0)), Undying()
    one._drain = Drain(0.0, 1.0)
    for now in (100.0, 100.5, 101.0):
        one._decide(None, child, now)
    assert child.kills == 3
    assert "".join(capfd.readouterr()).count("the grace is over") == 1


def test_a_hang_is_seen_and_ended(supervised):
    supervised.requests.write_text("2")
    supervised.engine("--hangs", own=("--hang-seconds=1",))
    assert supervised.end() == 1
    failure = supervised.failure()
    assert failure["word"] == "Hang"
    assert failure["message"] == "no token has moved for 1 seconds, and requests run: 2"


def test_workers_with_sessions_of_their_own_do_not_outlive_their_engine(supervised):
    supervised.engine("--worker", "--exit=1")
    supervised.end()
    worker = next(line for line in supervised.said().splitlines() if line.startswith("worker ")).split()[1]
    assert not Path(f"/proc/{worker}").exists()


def test_the_environment_reaches_the_engine_untouched(supervised):
    supervised.start(
        sys.executable, "-c", "import os; print(sorted(os.environ))", environment={"HF_TOKEN": "x"}
    )
    supervised.end()
    assert "'HF_TOKEN'" in supervised.said()
