"""Variables for the way out, as those that read them understand them."""

import pytest

from plimsoll.render.environment import outside
from plimsoll_runtime.sources.modelscope import ModelScope
from plimsoll_runtime.sources.web import Web
from tests.render.building import config


@pytest.mark.parametrize(
    ("endpoint", "asked"),
    [
        ("https://ms.corp", "https://ms.corp"),
        ("https://ms.corp/", "https://ms.corp"),
        ("https://ms.corp:8443/mirror/", "https://ms.corp:8443/mirror"),
        ("http://ms.corp:8080/mirror", "http://ms.corp:8080/mirror"),
    ],
)
def test_a_mirror_of_modelscope_is_asked_by_its_scheme_and_below_its_path(endpoint, asked, monkeypatch):
    domain = outside(config(network={"modelscopeEndpoint": endpoint}).network)["MODELSCOPE_DOMAIN"]
    seen = []

    def answers(_: Web, url: str, *__: object) -> object:
        seen.append(url)
        return {"Data": {"Files": []}}

    monkeypatch.setattr(Web, "json", answers)
    ModelScope("acme/tiny", None, Web({"MODELSCOPE_DOMAIN": domain})).listing()
    (url,) = seen
    assert url.startswith(f"{asked}/api/v1/models/acme/tiny/repo/files?")
    if asked.startswith("https://"):  # as ModelScope's own client makes it
        assert f"https://{domain}" == asked
