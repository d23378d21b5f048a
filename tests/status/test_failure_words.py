"""Each word that a supervisor may leave, on its way from a container's termination message to the condition that a person reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import plimsoll_runtime
from plimsoll import names
from plimsoll.api.conditions import FAILURES
from plimsoll.kube.pod_seen import pod_seen
from plimsoll.status.said import conditions_of
from plimsoll_runtime.failure import Failure, termination_message
from plimsoll_runtime.rules import RULES
from tests.kube.test_pod_seen import RUNNING, end, engine, pod, status
from tests.status.stories import story

FOLDER = Path(plimsoll_runtime.__file__).parent
ENDING = ("supervisor.py", "preflight.py", "hang.py", "group.py")
"""Modules that end an engine, or say why it ended, beside the table."""
IN_CODE = {
    word
    for name in ENDING
    for word in re.findall(r'Failure\(\s*"([A-Z]\w+)"', (FOLDER / name).read_text(encoding="utf-8"))
}
WORDS = sorted({*IN_CODE, *(rule.word for rule in RULES)})
UNEXPLAINED = "EngineEnded"


def test_every_word_has_a_meaning_that_conditions_may_carry():
    assert [word for word in WORDS if word not in {*FAILURES, UNEXPLAINED}] == []


@pytest.mark.parametrize("word", [word for word in WORDS if word != UNEXPLAINED])
def test_a_word_becomes_the_condition_with_its_sentence_and_its_remedy(word: str):
    remedy = next((rule.remedy for rule in RULES if rule.word == word), "do what helps")
    left = termination_message(Failure(word, "what was seen", remedy, ("a line of the log",)))
    seen = pod_seen(pod(status(engine(RUNNING, last=end(1, message=left), restarts=1))))
    ready = next(one for one in conditions_of(story(seen)) if one.type == names.READY)
    assert (ready.status, ready.reason) == ("False", word)
    assert "what was seen" in ready.message
    assert remedy in ready.message
