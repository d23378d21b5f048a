import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.learned import (
    MOST_BYTES,
    MOST_ENTRIES,
    NOTHING,
    Learned,
    Residual,
    added,
    export_learned,
    forgotten,
    import_learned,
    learned,
    merged,
    paced,
    taught,
)
from plimsoll.facts.learned_rows import LearnedError, LearnedKey
from plimsoll.facts.learned_speed import MOST_FACTOR, Speed

KEY = LearnedKey(model="abc", gpu="H100-SXM-80GB", engine="vllm-0.33.0", flags="tp1-t8192-s256")


def residual(term="activation", *, size=100, starts=3, key=KEY, half_width=10):
    return Residual(key=key, term=term, bytes=size, half_width=half_width, starts=starts)


keys = st.builds(LearnedKey, **dict.fromkeys(("model", "gpu", "engine", "flags"), st.sampled_from("abc")))
residuals = st.builds(
    Residual,
    key=keys,
    term=st.sampled_from(["weights", "graphs"]),
    bytes=st.integers(-(2**40), 2**40),
    half_width=st.integers(0, 2**36),
    starts=st.integers(1, 9),
)


speeds = st.builds(
    Speed,
    key=keys,
    **dict.fromkeys(("ttft", "tpot", "ttft_spread", "tpot_spread"), st.floats(1e-9, 1e9)),
    **dict.fromkeys(("input_tokens", "output_tokens", "points"), st.integers(1, 10**6)),
    at=st.integers(0, 2**40),
)


def speed(at=1, *, tpot=1.2, key=KEY):
    return Speed(
        key=key,
        ttft=1.1,
        tpot=tpot,
        ttft_spread=1.5,
        tpot_spread=1.2,
        input_tokens=512,
        output_tokens=128,
        points=3,
        at=at,
        name="Qwen/Qwen3-8B",
    )


@given(st.lists(residuals, max_size=30), st.lists(speeds, max_size=8))
def test_what_was_learned_is_found_bounded_and_survives_a_file(entries, paces):
    known = learned(entries, speeds=paces)
    assert learned(reversed(entries), speeds=reversed(paces)) == known
    assert import_learned(export_learned(known)) == known
    for pace in paces:
        kept = known.speed(pace.key)
        assert kept is not None
        assert kept.at >= pace.at
        assert 1 / MOST_FACTOR <= min(kept.ttft, kept.tpot) <= max(kept.ttft, kept.tpot) <= MOST_FACTOR
        assert min(kept.ttft_spread, kept.tpot_spread) >= 1
        assert max(kept.ttft_spread, kept.tpot_spread) <= MOST_FACTOR
    for entry in entries:
        found = known.residual(entry.term, entry.key)
        assert found is not None
        assert abs(found) <= MOST_BYTES


def test_nothing_is_found_where_nothing_was_learned():
    assert NOTHING.residual("weights", KEY) is None
    assert learned([residual()]).residual("weights", KEY) is None
    assert import_learned(export_learned(NOTHING)) == NOTHING


def test_the_residual_with_more_starts_behind_it_stays():
    assert learned([residual(size=1, starts=2), residual(size=2, starts=5)]).residual("activation", KEY) == 2


def test_the_newer_ramp_takes_the_place_of_the_older_one():
    known = paced(paced(learned([residual()]), speed(1, tpot=1.1)), speed(2, tpot=0.9))
    assert [one.tpot for one in known.speeds] == [0.9]
    assert taught(known, [residual("graphs")]).speeds == known.speeds, "a start takes nothing of it away"


def test_an_own_ramp_wins_over_a_newer_one_of_a_seed():
    both = merged(learned([], speeds=[speed(1)]), learned([], speeds=[speed(9, tpot=0.7)]))
    assert [one.at for one in both.speeds] == [1]


def test_what_ramps_taught_is_forgotten_by_the_same_words_as_what_starts_did():
    known = learned([residual()], speeds=[speed()])
    assert forgotten(known, words=["h100"]) == NOTHING
    assert forgotten(known, words=["qwen", "speed"]) == learned([residual()])
    assert forgotten(known, words=["activation"]) == learned([], speeds=[speed()])


def test_a_file_of_before_there_were_speeds_is_read_and_written_as_it_was():
    text = export_learned(learned([residual()]))
    assert "speeds" not in text
    assert import_learned(text).speeds == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [("tpot", 0), ("tpot", float("nan")), ("ttft", "1"), ("at", -1), ("points", 0), ("inputTokens", None)],
)
def test_a_wrong_speed_in_a_file_is_named(field, value):
    data = json.loads(export_learned(learned([], speeds=[speed()])))
    data["speeds"][0][field] = value
    with pytest.raises(LearnedError, match=rf"speeds\[0\].{field} is "):
        import_learned(json.dumps(data))


def test_all_that_was_learned_fits_a_config_map():
    word = "w" * 256
    rows = [
        residual(term=f"{word[:250]}{i}", key=LearnedKey(model=word, gpu=word, engine=word, flags=word))
        for i in range(1000)
    ]
    paces = [
        replace(speed(i), key=LearnedKey(model=f"{word[:250]}{i}", gpu=word, engine=word, flags=word))
        for i in range(300)
    ]
    known = learned(rows, speeds=paces)
    assert len(export_learned(known).encode()) < 2**20
    assert known.speeds, "neither kind takes all the room"
    assert max(one.at for one in known.speeds) == 299


def test_own_starts_win_over_a_seed_whatever_the_counts():
    own, seed = (
        learned([residual(size=1, starts=1)]),
        learned([residual(size=9, starts=99), residual("graphs")]),
    )
    both = merged(own, seed)
    assert both.residual("activation", KEY) == 1
    assert both.residual("graphs", KEY) == 100


ALL = st.builds(
    lambda entries, paces: learned(entries, speeds=paces),
    st.lists(residuals, max_size=9),
    st.lists(speeds, max_size=3),
)


def place(entry: Residual) -> tuple[LearnedKey, str]:
    return entry.key, entry.term


def places(value: Learned) -> set[tuple[LearnedKey, str]]:
    return {place(entry) for entry in value.residuals}


@given(ALL, ALL, ALL)
def test_what_was_learned_since_is_added_and_what_somebody_took_out_stays_out(there, own, since):
    after = added(there, own, since=since)
    out = places(since) - places(there)
    fresh = {*own.residuals} - {*since.residuals}
    assert {entry for entry in fresh if place(entry) not in out} <= {*after.residuals}
    assert not places(after) & out
    assert {*own.speeds} - {*since.speeds} <= {*after.speeds}
    assert {*after.residuals} <= {*there.residuals} | {*own.residuals} - {*since.residuals}
    assert {*after.speeds} <= {*there.speeds} | {*own.speeds} - {*since.speeds}
    assert added(there, own, since=own) == there


def test_only_the_steadiest_entries_are_kept_when_there_are_too_many():
    many = [residual(term=f"t{index}", starts=index + 1) for index in range(MOST_ENTRIES + 10)]
    kept = learned(many)
    assert len(kept.residuals) == MOST_ENTRIES
    assert kept.residual("t0", KEY) is None


def test_a_new_lesson_is_learned_though_all_places_are_taken_by_steadier_ones():
    full = learned(residual(term=f"t{index}", starts=9) for index in range(MOST_ENTRIES))
    known = taught(full, [residual("new", starts=1)])
    assert len(known.residuals) == MOST_ENTRIES
    assert known.residual("new", KEY) == 100
    again = taught(known, [residual("newer", starts=1)])
    assert again.residual("newer", KEY) == 100
    assert import_learned(export_learned(again)) == again


def test_entries_with_long_names_fit_into_one_config_map():
    keys_ = [
        LearnedKey(model=f"{index:0256}", gpu="é" * 256, engine="e" * 256, flags="f" * 256)
        for index in range(1500)
    ]
    known = learned(replace(residual(key=key), name="n" * 256) for key in keys_)
    assert 0 < len(export_learned(known).encode()) < 2**20
    assert import_learned(export_learned(known)) == known


ROW = {
    "model": "m",
    "gpu": "g",
    "engine": "e",
    "flags": "f",
    "term": "t",
    "bytes": 1,
    "halfWidth": 1,
    "starts": 1,
}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "must be JSON"),
        ("[]", '"schema": 1'),
        ('{"schema": 2, "residuals": []}', '"schema": 1'),
        (json.dumps({"schema": 1, "residuals": [3]}), r"residuals\[0\] is 3"),
        (json.dumps({"schema": 1, "residuals": [{**ROW, "bytes": "1"}]}), r"residuals\[0\].bytes is '1'"),
        (json.dumps({"schema": 1, "residuals": [{**ROW, "starts": 0}]}), "at least 1"),
        (json.dumps({"schema": 1, "residuals": [{**ROW, "model": ""}]}), r"residuals\[0\].model is ''"),
        (json.dumps({"schema": 1, "residuals": [{**ROW, "bytes": True}]}), "must be an integer"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(text, words):
    with pytest.raises(LearnedError, match=words):
        import_learned(text)
