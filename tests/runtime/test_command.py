"""Words of the supervisor's own that it cannot read: whoever sees the pod is told, since an operator of another release may have written them."""

import json

import pytest

from plimsoll_runtime import VERSION
from plimsoll_runtime.command import main


@pytest.mark.parametrize(
    ("own", "named"),
    [
        (["--word-of-a-later-release", "7"], "--word-of-a-later-release 7"),
        (["--grace", "soon"], "--grace"),
        (["--member", "0"], "--member"),
    ],
)
def test_words_that_this_release_does_not_know_are_told_where_the_kubelet_looks(tmp_path, own, named):
    message = tmp_path / "termination-log"
    assert main(["serve", *own, f"--termination-log={message}", "--", "vllm", "serve", "m"], {}) == 2
    told = json.loads(message.read_text())
    assert told["word"] == "BadSetting"
    assert told["message"].startswith(f"plimsoll-runtime {VERSION}: ")
    assert named in told["message"]
    assert "registry.runtimeImage" in told["remedy"]


def test_of_a_model_that_was_to_be_read_no_reason_takes_the_place(tmp_path, capfd):
    message = tmp_path / "termination-log"
    assert main(["facts", "pvc://a/b", "--later", f"--termination-log={message}"], {}) == 2
    assert not message.exists()
    assert "unrecognized arguments: --later" in capfd.readouterr().err
