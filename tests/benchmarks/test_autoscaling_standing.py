"""Whether ours is ahead in a cell, level, or neither, and how the cells are counted."""

import pytest

import autoscaling
import autoscaling_figures as figures
from tests.benchmarks.test_autoscaling import CELL, FIGURES, row


@pytest.mark.parametrize(
    ("ours", "theirs", "stands"),
    [
        (99.44, (99.43, 98.0), "ahead"),
        (99.44, (99.44, 98.0), "level"),
        (99.44, (99.45, 98.0), "NOT ahead"),
        (99.441, (99.439,), "level"),
        (99.436, (99.44, 99.45), "NOT ahead"),
    ],
)
def test_as_much_as_the_best_of_the_others_as_it_is_told_is_level_and_not_ahead(
    ours: float, theirs: tuple[float, ...], stands: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = {**row("plimsoll", 10, ours, requests=10), **dict.fromkeys(FIGURES, 1.0)}
    others = [row(name, 10, slo, swept=True) for name, slo in zip(("wva2", "hpa"), theirs, strict=False)]
    said = figures.verdict(CELL, [mine, *others])
    assert (said["ahead"], said["level"]) == (stands == "ahead", stands == "level")
    autoscaling.print_cell(CELL, [mine], said)
    autoscaling.print_standing([said])
    told = capsys.readouterr().out
    assert f" → {stands}\n" in told
    ahead, level = int(said["ahead"]), int(said["level"])
    assert (
        f"  ahead of every baseline at equal GPU-hours in {ahead} of 1 cells (aim 80%), level with the best in {level}\n"
        in told
    )
