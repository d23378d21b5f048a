"""What the engine was told: its command line, its environment, its configuration."""

from __future__ import annotations

from plimsoll_runtime.rules.rule import START, rule

_FLAGS = "correct the plan's engine flags: spec.engine.extraArgs, or spec.engine.version if this release has no such flag"

COMMAND = (
    rule(
        "BadFlag",
        r"error: (?P<what>(?:unrecognized arguments|ambiguous option|argument \S+|the following arguments are required): ?.+)",
        "the engine refuses its command line: {what}",
        _FLAGS,
    ),
    rule("BadFlag", r"\bserve: error: (?P<what>.+)", "the engine refuses its command line: {what}", _FLAGS),
    rule(
        "BadEnvironment",
        r"VLLM_PORT '(?P<what>[^']*)' appears to be a URI",
        "VLLM_PORT is {what}: a Service called vllm puts it there",
        "rename the Service vllm of this namespace, or set enableServiceLinks: false by spec.podPatches",
    ),
    rule(
        "BadEnvironment",
        r"Error: Unknown vLLM environment variable detected: (?P<what>\S+)",
        "this release of the engine has no environment variable {what}",
        "remove it from spec.engine.env",
    ),
    rule(
        "BadEnvironment",
        r"Token authentication is enabled but no authentication token was found",
        "Ray asks for a token, and none was given to it",
        "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN from a Secret by spec.engine.env, or RAY_AUTH_MODE=disabled there",
    ),
)

SETTINGS = (
    rule(
        "BadSetting",
        r"^(?:\([^)]*\) )*(?:ERROR [\d: -]+\[[^]]*\] )?\s*(?:Value error, (?P<what>.+?)(?: \[type=.*)?$|(?P<input>Input should be) )",
        "the engine refuses its configuration: {what}",
        _FLAGS,
        START,
    ),
    rule(
        "BadSetting",
        r"must be divisible by tensor parallel size|is greater than the derived max_model_len|validation errors? for \w+Config"
        r"|Unknown (?:quantization method|attention backend|load_?format)|is smaller than max_model_len|Invalid attention backend"
        r"|Load format \S+ is not supported|supplied chat template|No adapter found for (?!task )|does not support ray"
        r"|No valid attention backend found",
        "the engine refuses its configuration: {what}",
        _FLAGS,
        START,
    ),
    rule(
        "PortTaken",
        r"Address already in use(?!\. Retrying)",
        "the engine's port is taken within the pod",
        "another container of this pod listens there: see spec.podPatches",
        START,
    ),
)
