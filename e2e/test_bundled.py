"""The bundled image on a real node as anybody may start it: the words of its container are the engine's, and the supervisor is process 1."""

from __future__ import annotations

import json
import urllib.request
from typing import Final

import pytest

import models
from asking import Engine
from cluster.images import Recipe
from common import eventually
from engines import PORT, engine
from plimsoll.render.start import RUNTIME_PORT
from real import Namespace

pytestmark = [pytest.mark.real_node, pytest.mark.real_engine]

PATIENCE_SECONDS: Final = 900.0


def test_a_pod_of_the_bundled_image_that_names_no_command_serves_behind_the_supervisor(
    real_namespace: Namespace, bundled_image: Recipe
) -> None:
    model = models.dense()
    _, pod = engine(model, "alone")
    (container,) = pod["spec"]["containers"]
    assert "command" not in container
    container["image"] = bundled_image.reference
    real_namespace.create_all(model.config_map(), pod)
    address = real_namespace.ready("alone", PATIENCE_SECONDS)["status"]["podIP"]

    def state() -> str:
        try:
            with urllib.request.urlopen(f"http://{address}:{RUNTIME_PORT}/facts", timeout=60) as answer:
                return str(json.load(answer)["state"])
        except OSError:
            return ""

    assert eventually(lambda: state() == "serving", PATIENCE_SECONDS), "it looks now and then"
    assert Engine(url=f"http://{address}:{PORT}").complete(model.name, "once", 4)
    first = real_namespace.cluster.kubectl(
        "exec", f"--namespace={real_namespace.name}", "alone", "--", "cat", "/proc/1/cmdline"
    )
    assert first.stdout.split("\0")[:5] == [
        "python3",
        "-I",
        "-S",
        "/plimsoll/plimsoll_runtime.pyz",
        "serve",
    ], first
