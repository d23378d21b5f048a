"""A fetch over TLS that is stopped in the middle: what it notes as done is what the server sent. And certificates that cannot be read."""

from __future__ import annotations

import json
import select
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll_runtime.command import main
from plimsoll_runtime.failure import Failure
from plimsoll_runtime.sources.download import Download, Job
from plimsoll_runtime.sources.fetch import fetch
from plimsoll_runtime.sources.listing import File, Listing
from plimsoll_runtime.sources.partial import Partial
from plimsoll_runtime.sources.trouble import FetchFailed, Stopped
from plimsoll_runtime.sources.web import Answer, Web
from tests.runtime.sites import Asked, Reply, Site, certified, ranged
from tests.runtime.small_model import QUICK, Listener

BODY = b"A" * (256 << 10)
"""No more than the kernel holds, or the server would wait for whoever went away."""


class Encrypted(Site):
    def __init__(self, folder: Path) -> None:
        self.tls, self.authority = certified(folder, self.host)
        super().__init__()

    def answer(self, asked: Asked) -> Reply:
        return ranged(asked, BODY)


class Plain:
    """A source of one file without a sum."""

    name = "https://one"

    def __init__(self, site: Encrypted) -> None:
        self._url = site.url.replace("http:", "https:")
        self._web = Web({"SSL_CERT_FILE": str(site.authority)}, QUICK)

    def listing(self) -> Listing:
        return Listing("1", (File("m", len(BODY)),))

    def with_sums(self, file: File) -> File:
        return file

    def open(self, file: File, start: int, end: int) -> Answer:
        return self._web.open(f"{self._url}/m", {"Range": f"bytes={start}-{end - 1}"})


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Encrypted]:
    one = Encrypted(tmp_path)
    yield one
    one.close()


def test_what_is_still_encrypted_is_never_written(site, tmp_path, monkeypatch):
    told, aborted, read, abort = Listener(), threading.Event(), Answer.read, Answer.abort
    taken = 0

    def reads(answer: Answer, size: int) -> bytes:
        """The second time only after it was aborted, with more waiting in the kernel."""
        nonlocal taken
        taken += 1
        if taken == 2:
            select.select([answer._socket], [], [], 60)
            told.end.set()
            assert aborted.wait(60)
        return read(answer, size)

    def aborts(answer: Answer) -> None:
        abort(answer)
        aborted.set()

    monkeypatch.setattr(Answer, "read", reads)
    monkeypatch.setattr(Answer, "abort", aborts)
    source, target = Plain(site), tmp_path / "into/m"
    with pytest.raises(Stopped):
        Download(source, [Job(source.listing().files[0], target)], QUICK, streams=1).run(told)
    half = Partial(target, len(BODY))
    (gap,) = half.gaps()
    half.close()
    assert gap[0] > 0
    assert half.file.read_bytes()[: gap[0]] == BODY[: gap[0]]


@pytest.mark.parametrize(
    "text", ["", "no PEM", "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n"]
)
@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
@pytest.mark.parametrize("command", ["fetch", "facts"])
def test_certificates_that_cannot_be_read_are_told_as_that(command, name, text, tmp_path):
    file, message = tmp_path / "ca.crt", tmp_path / "message"
    file.write_text(text)
    environment = {name: str(file), "HF_ENDPOINT": "https://127.0.0.1:1"}
    if command == "fetch":
        with pytest.raises(FetchFailed) as caught:
            fetch("hf://acme/m", None, tmp_path / "into", Listener(), environment, patience=QUICK)
        failure = caught.value.failure
    else:
        assert main(["facts", "hf://acme/m", "--termination-log", str(message)], environment) == 1
        told = json.loads(message.read_text())
        failure = Failure(told["word"], told["message"], told["remedy"])
    assert failure.word == "Download"
    assert failure.message == f"{name}: {file} holds no certificates that can be read"
    assert "network.caBundle" in failure.remedy
