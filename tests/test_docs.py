"""Examples in the docs are read by the program that they are about."""

import re
from pathlib import Path

import yaml

from plimsoll.facts.snapshot import read_snapshot

DOCS = Path(__file__).parents[1] / "docs"


def test_the_fleet_file_of_the_docs_is_one_with_a_pool_for_each_of_its_kinds():
    shown = re.search(r"^```yaml\n(.*?)^```$", (DOCS / "fleets.md").read_text(), re.MULTILINE | re.DOTALL)
    assert shown is not None
    inventory = read_snapshot(shown[1]).inventory()
    assert inventory.problems == ()
    assert len(inventory.pools) == len(yaml.safe_load(shown[1])["pools"])


def test_links_between_pages_lead_somewhere():
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    links = [
        (page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    ]
    assert links
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []
