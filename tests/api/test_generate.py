"""What is generated is committed: crds/ and docs/reference/ are what the models say."""

from pathlib import Path

import pytest

from plimsoll.api.generate import generated_files, main

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", sorted(generated_files()))
def test_a_generated_file_is_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == generated_files()[path], "run `make generate`"


def test_generating_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    main(tmp_path)
    assert {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()} == set(
        generated_files()
    )


def test_no_stale_file_stands_beside_the_generated_ones() -> None:
    assert {f"crds/{path.name}" for path in (ROOT / "crds").iterdir()} <= set(generated_files())
    assert {f"docs/reference/{path.name}" for path in (ROOT / "docs/reference").iterdir()} <= set(
        generated_files()
    )
