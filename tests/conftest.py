"""What every test stands on: the same examples of hypothesis in every run, and no way out of this machine.

`pytest --hypothesis-profile=explore` looks for new counter-examples; what it finds becomes a case of its own.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

# No deadline, nor one for what is drawn: a slow machine is not a failing test.
settings.register_profile(
    "steady",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-golden", action="store_true", help="write golden files instead of comparing them"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a file, or with --write-golden make it that file; the change is then reviewed as a diff."""

    def check(path: Path, text: str) -> None:
        if request.config.getoption("--write-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), (
            f"{path.name} differs; if it should, run with --write-golden"
        )

    return check


@pytest.fixture(autouse=True, scope="session")
def examples_of_their_own() -> Iterator[None]:
    """Hypothesis also tries numbers that stand in whatever modules are loaded by then, which depends on the tests that ran before:
    the same examples in every run need that to be nothing."""
    with pytest.MonkeyPatch.context() as patch:
        if settings.default is not None and settings.default.derandomize:
            patch.setattr(providers, "_get_local_constants", Constants)
        yield


def is_local(host: object) -> bool:
    if host in {None, "", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True, scope="session")
def no_way_out() -> Iterator[None]:
    """Connections and look-ups beyond this machine fail at once, with or without a network."""
    connect, getaddrinfo = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family in {socket.AF_INET, socket.AF_INET6} and not is_local(address[0]):
            raise OSError(f"a test tried to connect to {address[0]}; tests use no network")
        connect(self, address)

    def guarded_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_local(host):
            raise OSError(f"a test tried to look up {host}; tests use no network")
        return getaddrinfo(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
        yield
