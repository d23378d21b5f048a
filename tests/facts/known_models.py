"""Catalogue models for tests, as values whose parts need no checks for absence."""

from typing import Any

from plimsoll.facts.hf_config import parse_config
from plimsoll.facts.model_codec import model_facts
from plimsoll.facts.models import lookup
from plimsoll.facts.weights import weights_from_architecture


def known(name: str) -> Any:
    """Facts of a model the catalogue must know."""
    facts = lookup(name)
    assert facts is not None, name
    return facts


def parsed(config: Any, **options: Any) -> Any:
    """An architecture read from a config."""
    return parse_config(config, **options)


def as_facts(architecture: Any) -> Any:
    """Facts of an architecture that no catalogue holds."""
    weights = weights_from_architecture(architecture)
    return model_facts(
        source="test", revision=None, architecture=architecture, weights=weights, origin="a test"
    )
