"""Errors of the user's input and of the endpoint. Each message is one sentence, which says what would be right."""

from __future__ import annotations


class LoadError(ValueError):
    """Something that the user wrote cannot be used, so nothing was sent."""


class EndpointError(Exception):
    """The endpoint does not answer as an OpenAI-compatible server does."""


class Stopped(Exception):
    """It was stopped before there was anything to measure."""
