"""Programs end with their owner, however it ends; here they are `sleep`, and the owner is a process of the test's own."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.processes import ClusterFailed, Ports, Processes

PATIENCE_SECONDS = 60
E2E = Path(__file__).parents[2] / "e2e"
OWNER = """
import json, sys, time
from pathlib import Path
from cluster.processes import Processes
programs = Processes(Path(sys.argv[1]))
programs.start("one", ["sleep", "600"])
programs.start("two", ["sleep", "600"])
print(json.dumps(list(programs.pids.values())), flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Processes]:
    running = Processes(tmp_path)
    yield running
    running.stop()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks for processes in /proc")
def test_programs_and_their_folder_are_gone_after_the_owner_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    environ = {**os.environ, "PYTHONPATH": str(E2E)}  # noqa: TID251 - as this session's own
    argv = [sys.executable, "-c", OWNER, str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=environ, text=True) as owner:
        assert owner.stdout is not None
        pids = json.loads(owner.stdout.readline())
        assert all(alive(pid) for pid in pids)
        owner.kill()
    assert eventually(lambda: not any(alive(pid) for pid in pids))
    assert eventually(lambda: not folder.exists())


def test_stopped_programs_are_gone_and_their_logs_stay(programs: Processes) -> None:
    programs.start("one", ["sh", "-c", "echo ready; exec sleep 600"])
    programs.wait("one", lambda: "ready" in programs.log("one").read_text(), PATIENCE_SECONDS)
    (pid,) = programs.pids.values()
    programs.stop()
    assert programs.pids == {}
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert programs.log("one").read_text() == "ready\n"


def test_a_program_that_ends_early_is_told_with_the_end_of_its_log(programs: Processes) -> None:
    programs.start("one", ["sh", "-c", "seq 100; echo cannot bind; exit 3"])
    with pytest.raises(
        ClusterFailed, match=r"one ended with 3; the end of(.|\n)*    100\n    cannot bind"
    ) as failed:
        programs.wait("one", lambda: False, PATIENCE_SECONDS)
    assert "    70\n" not in str(failed.value)


def test_a_program_that_never_gets_ready_is_told(programs: Processes) -> None:
    programs.start("one", ["sleep", "600"])
    with pytest.raises(ClusterFailed, match="one is not ready after 0 s"):
        programs.wait("one", lambda: False, 0.1)


def test_programs_see_nothing_of_the_owners_environment(
    programs: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s")
    programs.start("one", ["sh", "-c", 'echo "[$SECRET]"; exec sleep 600'])
    programs.wait("one", lambda: "]" in programs.log("one").read_text(), PATIENCE_SECONDS)
    assert programs.log("one").read_text() == "[]\n"


def test_ports_are_different_and_held_for_programs_that_share_them() -> None:
    ports = Ports()
    taken = [ports.take() for _ in range(50)]
    assert len(set(taken)) == 50
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind((ports.address, taken[0]))
    with socket.socket() as program:
        program.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        program.bind((ports.address, taken[0]))
    ports.release()
