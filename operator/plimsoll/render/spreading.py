"""How requests come to be spread over replicas: by a picker that a gateway asks, or by a Service, which chooses for each connection.

Where a Service chooses, engines close connections after each answer, if the admin lets them: then it chooses for each request.
"""

from __future__ import annotations

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.command import EngineCommand


def closes(spec: LLMDeploymentSpec, config: OperatorConfig) -> bool:
    """Whether engines of new sets close connections, so that a Service chooses for each request."""
    return config.runtime.enabled and config.runtime.close_connections and spec.networking.picker is None


def closing_words(spec: LLMDeploymentSpec, config: OperatorConfig, engine: EngineCommand) -> tuple[str, ...]:
    """Arguments by which the supervisor has the engine close connections."""
    return ("--close-connections",) if engine.takes_middleware and closes(spec, config) else ()
