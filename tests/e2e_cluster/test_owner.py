"""What runs programs for the time of a `with` leaves nothing behind, and looks for another port only where its own was taken."""

import os
from collections.abc import Sequence

import pytest

from cluster import processes
from cluster.owner import ATTEMPTS, Owner
from cluster.processes import ClusterFailed, free_port

PATIENCE_SECONDS = 60
IS_TAKEN = "echo 'bind: address already in use'; exit 1"
NO_FLAG = "echo no such flag; exit 2"
LISTENS = "echo listening; exec sleep 600"


class Sleeper(Owner):
    """Each start does the next of `lives`, and the last one again."""

    called = "sleeper"

    def __init__(self, *lives: str) -> None:
        self._lives = lives
        self.asked: list[str] = []

    def _start(self) -> None:
        self.address = self._listening("one", "sh", self._args, self._listens, PATIENCE_SECONDS)

    def _args(self, address: str) -> Sequence[str]:
        self.asked.append(address)
        return ["-c", self._lives[min(len(self.asked), len(self._lives)) - 1]]

    def _listens(self, address: str) -> bool:
        return address == self.asked[-1] and "listening" in self.processes.log("one").read_text()


def test_its_programs_and_its_folder_last_as_long_as_the_with() -> None:
    with Sleeper(LISTENS) as owner:
        (pid,) = owner.processes.pids.values()
        assert owner.folder.is_dir()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not owner.folder.exists()


def test_where_a_port_was_taken_the_program_is_told_another() -> None:
    with Sleeper(IS_TAKEN, IS_TAKEN, LISTENS) as owner:
        assert owner.address == owner.asked[-1]
        assert len(set(owner.asked)) == 3


def test_a_port_is_nobody_else_s_while_its_owner_lives_whoever_draws_it() -> None:
    state = processes._PORTS.getstate()
    try:
        with Sleeper(LISTENS) as owner:
            processes._PORTS.setstate(state)
            other = free_port()
            assert owner.address != f"127.0.0.1:{other}"
            processes._PORTS.setstate(state)
            with Sleeper(LISTENS) as second:
                assert owner.address != second.address
    finally:
        processes._PORTS.setstate(state)


class Second(Sleeper):
    """Beside a program that runs by then."""

    def _start(self) -> None:
        self.processes.start("first", ["sleep", "600"])
        self.first = self.processes.pid("first")
        super()._start()


@pytest.mark.parametrize(
    ("lives", "starts"),
    [
        pytest.param((NO_FLAG,), 1, id="what another port would not mend is not tried again"),
        pytest.param((IS_TAKEN, NO_FLAG), 2, id="nor for what was said of the port before"),
        pytest.param((IS_TAKEN,), ATTEMPTS, id="all ports of the machine are somebody's"),
    ],
)
def test_one_that_never_listens_leaves_no_folder_and_nothing_that_was_started_before_it(
    lives: tuple[str, ...], starts: int
) -> None:
    owner = Second(*lives)
    with pytest.raises(ClusterFailed, match="one ended with"), owner:
        pass
    assert len(owner.asked) == starts
    assert not owner.folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(owner.first, 0)


def test_what_fails_beside_its_programs_is_told_with_their_logs() -> None:
    with pytest.raises(LookupError) as failed, Sleeper(LISTENS):
        raise LookupError
    (note,) = failed.value.__notes__
    assert note.startswith("one; the end of ")
    assert note.endswith("    listening")
