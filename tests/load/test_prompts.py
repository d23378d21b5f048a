"""Prompts without a tokenizer: as many words as tokens want, alike where beginnings are shared, and nowhere else."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.load import prompts as prompts_module
from plimsoll.load.prompts import (
    ASSUMED,
    LONG_PROBE,
    SHORT_PROBE,
    WORDS,
    Calibration,
    Prompts,
    calibrated,
)
from plimsoll.load.workload import Ask


def ask(tokens: int, **changes: object) -> Ask:
    return Ask(number=0, at=None, input_tokens=tokens, output_tokens=1, **changes)  # type: ignore[arg-type]


def alike(one: str, other: str) -> int:
    """Words that two texts have in common at their start."""
    pairs = zip(one.split(), other.split(), strict=False)
    return next((place for place, (left, right) in enumerate(pairs) if left != right), -1)


def test_there_are_as_many_words_as_eight_bits_tell():
    assert len(WORDS) == len(set(WORDS)) == 256


@given(
    overhead=st.floats(0, 40),
    per_word=st.floats(0.5, 6),
    tokens=st.integers(60, 30_000),
    seed=st.integers(0, 100),
)
def test_a_prompt_has_its_tokens_to_half_a_word(overhead: float, per_word: float, tokens: int, seed: int):
    text = Prompts(seed, Calibration(overhead, per_word, measured=True)).text(ask(tokens))
    assert abs(overhead + per_word * len(text.split()) - tokens) <= per_word / 2 + 1e-6


@pytest.mark.parametrize(("overhead", "per_word"), [(0, 1.0), (23, 1.0), (7, 2.7), (11, 0.8)])
def test_two_prompts_teach_what_words_are(overhead: float, per_word: float):
    found = calibrated(round(overhead + SHORT_PROBE * per_word), round(overhead + LONG_PROBE * per_word))
    assert found.measured
    assert found.per_word == pytest.approx(per_word, rel=0.01)
    assert found.overhead == pytest.approx(overhead, abs=1.0)


@pytest.mark.parametrize("counts", [(None, None), (40, None), (40, 40), (400, 40)])
def test_a_server_that_counts_nonsense_teaches_nothing(counts: tuple[int | None, int | None]):
    assert calibrated(*counts) == ASSUMED


def test_no_two_prompts_begin_alike():
    prompts = Prompts(0, ASSUMED)
    texts = [prompts.text(ask(200)) for _ in range(200)]
    assert max(alike(one, other) for one, other in combinations(texts, 2)) < 4


def test_a_shared_beginning_is_alike_and_the_rest_is_not():
    prompts = Prompts(0, Calibration(10, 2.0, measured=True))
    same = [prompts.text(ask(1000, prefix=3, prefix_tokens=610)) for _ in range(3)]
    other = prompts.text(ask(1000, prefix=4, prefix_tokens=610))
    assert {alike(one, two) for one, two in combinations(same, 2)} <= {300, 301}
    assert alike(same[0], other) < 4
    assert {len(text.split()) for text in (*same, other)} == {495}


def test_a_prompt_shorter_than_the_beginning_is_a_part_of_it():
    prompts = Prompts(0, Calibration(0, 1.0, measured=True))
    long = prompts.text(ask(500, prefix=0, prefix_tokens=400))
    short = prompts.text(ask(100, prefix=0, prefix_tokens=400))
    assert long.split()[:100] == short.split()


def test_blocks_of_a_trace_are_alike_as_far_as_their_ids():
    prompts = Prompts(0, Calibration(12, 1.6, measured=True))
    one = prompts.text(ask(1500, blocks=(5, 6, 7)))
    two = prompts.text(ask(1400, blocks=(5, 6, 8)))
    three = prompts.text(ask(1500, blocks=(9, 6, 7)))
    assert alike(one, two) == 2 * round(512 / 1.6)
    assert alike(one, three) < 4
    assert [12 + 1.6 * len(text.split()) for text in (one, two)] == pytest.approx([1500, 1400], abs=1)


def test_the_last_block_is_as_long_as_what_is_left():
    prompts = Prompts(0, Calibration(0, 1.0, measured=True))
    assert len(prompts.text(ask(513, blocks=(1, 2))).split()) == 513
    # Fewer ids than the tokens want: the rest is nobody else's.
    assert len(prompts.text(ask(1100, blocks=(1,))).split()) == 1100


def test_another_run_has_other_texts_of_the_same_lengths():
    """A cache that the first run filled must not answer the second."""
    calibration = Calibration(3, 1.5, measured=True)
    first, second = Prompts(1, calibration, salt=5), Prompts(1, calibration, salt=6)
    for one in (ask(300), ask(300, prefix=0, prefix_tokens=100), ask(1100, blocks=(1, 2, 3))):
        texts = first.text(one), second.text(one)
        assert alike(*texts) < 4
        assert len(texts[0].split()) == len(texts[1].split())


def test_beginnings_are_the_same_though_not_all_are_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prompts_module, "_KEPT", 5000)
    prompts = Prompts(0, Calibration(0, 1.0, measured=True))
    first = [prompts.text(ask(200, prefix=which, prefix_tokens=200)) for which in range(40)]
    assert [prompts.text(ask(200, prefix=which, prefix_tokens=200)) for which in range(40)] == first
    assert sum(map(len, prompts._kept.values())) == prompts._kept_letters <= 5000


def test_another_seed_has_other_texts():
    assert Prompts(1, ASSUMED).text(ask(50)) != Prompts(2, ASSUMED).text(ask(50))
