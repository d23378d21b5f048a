"""The five words, each from the evidence that makes it, and none from evidence that is not there."""

import pytest

from plimsoll.load.bottleneck import Circumstances, Word, judge, named
from plimsoll.load.engine import EngineWindow


def engine(**changes: object) -> EngineWindow:
    """An engine at ease."""
    values: dict[str, object] = {
        "looks": 30,
        "running_mean": 8.0,
        "running_max": 12.0,
        "waiting_mean": 0.0,
        "waiting_max": 0.0,
        "kv_usage_mean": 0.3,
        "kv_usage_max": 0.5,
        "held_at": None,
        "preemptions": 0.0,
        "finished": 1000.0,
        "queue_ms": 1.0,
        "prefill_ms": 100.0,
        "prefix_hit_share": None,
        "gpu_busy": None,
        "several": False,
    }
    return EngineWindow(**{**values, **changes})  # type: ignore[arg-type]


QUEUE = {"waiting_mean": 20.0, "waiting_max": 40.0}
LATE = Circumstances(ttft_p99_ms=5000, ttft_target_ms=1000)


@pytest.mark.parametrize(
    ("seen", "around", "word"),
    [
        ({}, Circumstances(), None),
        ({}, LATE, Word.PREFILL_TOO_SLOW),
        ({"preemptions": 11.0}, Circumstances(), Word.TOO_MANY_SEQUENCES),
        ({"preemptions": 10.0}, Circumstances(), None),
        ({"preemptions": 3.0, "finished": None}, Circumstances(finished=100), Word.TOO_MANY_SEQUENCES),
        ({"kv_usage_max": 0.97, **QUEUE}, Circumstances(), Word.KV_EXHAUSTED),
        ({"kv_usage_max": 0.97}, Circumstances(), None),  # full, and nobody waits for it
        ({"kv_usage_max": 0.99, "preemptions": 300.0, **QUEUE}, LATE, Word.TOO_MANY_SEQUENCES),
        ({"held_at": 16.0, "running_max": 16.0, **QUEUE}, Circumstances(), Word.BATCH_TOO_SMALL),
        ({"running_max": 64.0, **QUEUE}, Circumstances(seats=64), Word.BATCH_TOO_SMALL),
        ({"running_max": 40.0, "held_at": 40.0, **QUEUE}, Circumstances(seats=64), None),
        ({"gpu_busy": 0.3}, Circumstances(), Word.BATCH_TOO_SMALL),
        ({"gpu_busy": 0.9}, Circumstances(), None),
        ({"held_at": 16.0, "queue_ms": 4000.0, **QUEUE}, LATE, Word.BATCH_TOO_SMALL),
        # A queue though there are seats and cache: prompts wait for prompts.
        ({"queue_ms": 4000.0, **QUEUE}, LATE, Word.PREFILL_TOO_SLOW),
        ({}, Circumstances(planned_bound="communication"), None),  # expected, and not seen
    ],
)
def test_the_word_follows_from_the_evidence(
    seen: dict[str, object], around: Circumstances, word: Word | None
):
    found = named(judge(engine(**seen), around))
    assert (found.word if found else None) == word


def test_a_late_first_token_behind_a_full_cache_is_not_the_prefill_s_fault():
    judged = judge(engine(kv_usage_max=0.99, queue_ms=4000.0, **QUEUE), LATE)
    assert {one.word: one.holds for one in judged}[Word.PREFILL_TOO_SLOW] is False


@pytest.mark.parametrize(
    ("seen", "word", "missing"),
    [
        ({"preemptions": None}, Word.TOO_MANY_SEQUENCES, "preemptions are not exported"),
        ({"preemptions": None, "several": True}, Word.TOO_MANY_SEQUENCES, "several engines"),
        ({"kv_usage_max": None}, Word.KV_EXHAUSTED, "not exported"),
        ({"waiting_mean": None}, Word.BATCH_TOO_SMALL, "exported"),
        ({}, Word.PREFILL_TOO_SLOW, "no TTFT target"),
        ({}, Word.COMMUNICATION_BOUND, "a plan"),
    ],
)
def test_what_cannot_be_judged_says_what_is_missing(seen: dict[str, object], word: Word, missing: str):
    judged = {one.word: one for one in judge(engine(**seen), Circumstances())}
    assert judged[word].holds is None
    assert missing in judged[word].evidence


def test_without_metrics_nothing_is_judged_and_all_of_it_says_why():
    judged = judge(None, LATE)
    assert [one.word for one in judged] == list(Word)
    assert {one.holds for one in judged} == {None}
    assert named(judged) is None


def test_every_word_has_a_remedy_and_figures():
    judged = judge(engine(preemptions=100.0, kv_usage_max=0.97, **QUEUE), LATE)
    assert all(one.remedy for one in judged)
    assert "100 preemptions for 1,000 finished requests (10.0%" in judged[0].evidence
