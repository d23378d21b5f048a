"""Whole texts of every kind that is read, against the resource they became.

`pytest tests/cli/importing --write-golden` writes the expected files again; read the difference.
"""

from pathlib import Path

import pytest
import yaml

from plimsoll.api.loading import load_deployments
from plimsoll.cli.importing import Outcome, import_text

SAMPLES = sorted(
    path for path in (Path(__file__).parents[2] / "samples" / "import").iterdir() if path.is_file()
)
GOLDEN = Path(__file__).parent / "golden"


def written(imported):
    """Everything a user is told, as one readable file."""
    return yaml.safe_dump(
        {
            "documents": list(imported.documents),
            "lost": [f"{fate.what}: {fate.why}" for fate in imported.lost],
            "translated": [f"{fate.what} -> {fate.to} {fate.why}".strip() for fate in imported.translated],
            "warnings": list(imported.warnings),
        },
        sort_keys=False,
        allow_unicode=True,
        width=1000,
    )


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_sample_becomes_the_resource_that_was_reviewed(sample, golden):
    golden(GOLDEN / f"{sample.name}.golden.yaml", written(import_text(sample.read_text("utf-8"))))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_sample_becomes_a_valid_resource(sample):
    imported = import_text(sample.read_text("utf-8"))
    text = yaml.safe_dump_all(imported.documents, sort_keys=False)
    loaded = load_deployments(text)
    assert loaded.problems == ()
    assert len(loaded.deployments) == len(imported.documents) >= 1


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_secrets_are_neither_printed_nor_written(sample):
    imported = import_text(sample.read_text("utf-8"))
    assert "do_not_print_me" not in written(imported)
    assert "do_not_print_me" not in repr(imported)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_what_is_lost_has_a_reason_and_what_is_kept_a_place(sample):
    for fate in import_text(sample.read_text("utf-8")).fates:
        assert fate.why if fate.outcome is Outcome.LOST else fate.to


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_the_same_text_gives_the_same_bytes(sample):
    text = sample.read_text("utf-8")
    assert written(import_text(text)) == written(import_text(text))
