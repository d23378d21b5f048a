"""Catalogue models for tests, as values whose parts need no checks for absence."""

from typing import Any

from plimsoll.facts.hf_config import parse_config
from plimsoll.facts.models import lookup


def known(name: str) -> Any:
    """Facts of a model the catalogue must know."""
    facts = lookup(name)
    assert facts is not None, name
    return facts


def parsed(config: Any, **options: Any) -> Any:
    """An architecture read from a config."""
    return parse_config(config, **options)
