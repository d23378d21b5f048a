"""Words of the supervisor's own that it cannot read: whoever sees the pod is told, since an operator of another release may have written them."""

import json

import pytest

from plimsoll_runtime import VERSION, closing, command
from plimsoll_runtime.command import main
from tests.runtime.test_cuda import TORCH, image


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


def test_what_has_an_engine_close_connections_hides_nothing_from_the_look_at_the_machine(
    tmp_path, monkeypatch
):
    """Python finds our middleware by the variable that may also choose another torch, of which the CUDA would not be known."""
    runs = []
    monkeypatch.setattr(
        command, "_run", lambda options, said, members, need, kept: runs.append((options, need))
    )
    own = ["serve", "--port=0", "--close-connections", "--"]
    main([*own, "vllm", "serve", "m"], image(tmp_path, TORCH))
    main([*own, "vllm", "serve", "m"], {**image(tmp_path / "other", TORCH), "PYTHONPATH": "/opt/torch"})
    (options, need), (_, unknown) = runs
    assert options.argv == ("vllm", "serve", "m", *closing.WORDS)
    assert options.environment["PYTHONPATH"]
    assert (need.cuda, unknown.cuda) == ((13, 0), None)
