"""A download that is sent on, by locations as servers write them: without a path, or with what no request may hold."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from plimsoll_runtime.sources.web import Web
from tests.runtime.proxy_site import ProxySite
from tests.runtime.sites import Asked, Reply, Site
from tests.runtime.small_model import QUICK


class Mirror(Site):
    """Sends whoever asks for /m to a location, and answers the rest."""

    location = ""

    def answer(self, asked: Asked) -> Reply:
        sends = asked.path == "/m"
        return Reply(302, b"", {"Location": self.location}) if sends else Reply(200, b"here")


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    one = Mirror()
    yield one
    one.close()


@pytest.mark.parametrize(
    ("location", "asked"),
    [
        ("?token=1", "/?token=1"),
        ("", "/"),
        ("#part", "/"),
        ("/my folder/x?a=b c", "/my%20folder/x?a=b%20c"),
        ("/my%20folder/x?sig=a%2Fb%3D&c=d+e~", "/my%20folder/x?sig=a%2Fb%3D&c=d+e~"),
        ("/mod\u00c3\u00a8le", "/mod%C3%A8le"),  # UTF-8, as a header shows it
        ("/a ", "/a"),
    ],
)
def test_a_location_is_asked_for_as_it_is_meant(mirror, location, asked):
    mirror.location = f"{mirror.url}{location}"
    with Web({}, QUICK).open(f"{mirror.url}/m") as answer:
        assert answer.text() == b"here"
    assert [one.raw for one in mirror.asked] == ["/m", asked]


def test_a_location_beside_the_first_may_hold_spaces_too(mirror):
    mirror.location = "my folder/x"
    with Web({}, QUICK).open(f"{mirror.url}/m") as answer:
        assert answer.text() == b"here"
    assert mirror.asked[-1].raw == "/my%20folder/x"


def test_a_proxy_is_asked_for_a_location_without_a_path_by_its_root(mirror):
    proxy = ProxySite({"mirror.example": mirror.port})
    mirror.location = "http://mirror.example?token=1"
    try:
        with Web({"HTTP_PROXY": f"http://{proxy.address}"}, QUICK).open("http://mirror.example/m") as answer:
            assert answer.text() == b"here"
    finally:
        proxy.close()
    assert proxy.asked == ["GET http://mirror.example/m", "GET http://mirror.example/?token=1"]
    assert urlsplit(mirror.asked[-1].raw).path == "/"
