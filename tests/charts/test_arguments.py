"""What the chart tells the operator is what the operator's command line knows."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from plimsoll.__main__ import main

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.yaml"))


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_every_argument_of_the_operators_pods_is_an_option_of_it(file: Path) -> None:
    (pods,) = (
        one["spec"]["template"]["spec"]
        for one in yaml.safe_load_all(file.read_text())
        if one["kind"] == "Deployment"
    )
    (operator,) = pods["containers"]
    options = {name for option in main.params for name in option.opts}
    assert {argument.partition("=")[0] for argument in operator["args"]} <= options
    mounted = tuple(one["mountPath"] for one in operator["volumeMounts"])
    files = [value for argument in operator["args"] if (value := argument.partition("=")[2]).startswith("/")]
    assert files
    assert all(value.startswith(mounted) for value in files)
