"""Examples in the docs are read by the program that they are about."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import yaml

from plimsoll.cli.main import cli
from plimsoll.facts.snapshot import read_snapshot
from plimsoll.simulate.fidelity import belief_error

DOCS = Path(__file__).parents[1] / "docs"
PAGES = (DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md")))
COMMAND = re.compile(r"(?:^(?:\$ )?|`|kubectl )plimsoll +([a-z]+[^`\n]*)", re.MULTILINE)
ENDS = ("--", "|", ">", "&", "&&", ";")
"""What follows is not the program's own."""


def test_the_fleet_file_of_the_docs_is_one_with_a_pool_for_each_of_its_kinds():
    shown = re.search(r"^```yaml\n(.*?)^```$", (DOCS / "fleets.md").read_text(), re.MULTILINE | re.DOTALL)
    assert shown is not None
    inventory = read_snapshot(shown[1]).inventory()
    assert inventory.problems == ()
    assert len(inventory.pools) == len(yaml.safe_load(shown[1])["pools"])


def test_links_between_pages_lead_somewhere():
    links = [
        (page, link) for page in PAGES for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    ]
    assert links
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []


def test_links_into_a_page_lead_to_one_of_its_headings():
    links = [
        (page, (page.parent / link).resolve() if link else page, heading)
        for page in PAGES
        for link, heading in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text())
    ]
    assert len(links) > 20
    assert [
        (page.name, target.name, heading)
        for page, target, heading in links
        if heading not in headings(target.read_text())
    ] == []


def headings(text: str) -> set[str]:
    """As they are named in links: in small letters, without marks, hyphens for spaces."""
    told = re.findall(r"^#+ +(.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in told}


def test_command_lines_of_the_docs_ask_for_what_the_program_has():
    lines = [(page.name, line) for page in PAGES for line in COMMAND.findall(page.read_text())]
    assert len(lines) > 40
    unknown = [(page, line, word) for page, line in lines for word in words_unknown(line)]
    assert unknown == []


def test_simulated_figures_of_the_docs_stand_beside_what_the_simulator_is_off_by():
    """A page with tables of them says it; one that tells of them in its sentences says so, or leads there."""
    pages = {page: page.read_text() for page in PAGES}
    tables = [page for page, text in pages.items() if re.search(r"^\|.*SLO %", text, re.MULTILINE)]
    told = [page for page, text in pages.items() if any(map(is_simulated, prose(text)))]
    assert tables
    assert {page.name for page in told} >= {"README.md", "evaluation.md", "simulate.md"}
    silent = [page for page in {*tables, *told} if belief_error() not in " ".join(pages[page].split())]
    assert not set(silent) & set(tables), f"they are to say: {belief_error()}"
    assert [page.name for page in silent if OFF not in pages[page]] == [], f"they are to lead to {OFF}"


OFF = "evaluation.md#how-far-the-simulator-is-off)"


def prose(text: str) -> list[str]:
    """Its paragraphs and items, without what is code."""
    return re.split(r"\n\s*\n|\n(?=- )", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


def is_simulated(said: str) -> bool:
    """Whether it has a share or a factor, and speaks of what is simulated; simulated nodes are of the testbed."""
    subject = re.search(r"engine model|simulators?\b|simulations?\b|\bsimulated\b(?! nodes?)", said)
    return subject is not None and re.search(r"\d ?%|\d\.\d\d|\d times", said) is not None


def words_unknown(line: str) -> Iterator[str]:
    """The command, or its options, of which the program knows nothing; brackets only say what may be left out."""
    name, *rest = shlex.split(re.sub(r"[\[\]]", "", line), comments=True)
    command = cli.get_command(click.Context(cli), name)
    if command is None:
        yield name
        return
    if isinstance(command, click.Group) and rest:
        command = command.commands[rest.pop(0)]
    options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    for word in rest:
        if word in ENDS:
            return
        if re.match("--?[a-z]", word) and word.partition("=")[0] not in options:
            yield word
