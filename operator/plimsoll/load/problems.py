"""What can be wrong with the question or with the endpoint, told as one sentence that says what would be right."""

from __future__ import annotations


class LoadError(ValueError):
    """Something that the user wrote cannot be used; nothing was sent."""


class EndpointError(Exception):
    """The endpoint does not answer as an OpenAI-compatible server does."""
