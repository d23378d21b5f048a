"""What the image lacks, and what it cannot write."""

from __future__ import annotations

from plimsoll_runtime.remedies import WRITABLE_FOLDER
from plimsoll_runtime.rules.rule import rule

IMAGE = (
    rule(
        "NoEngine",
        r"No module named '?vllm'?$|No such file or directory: '(?:ray|vllm)'$",
        "the image has no engine: {line}",
        "an image that has the engine (spec.engine.image), with the program on its PATH",
    ),
    rule(
        "NotWritable",
        r"Read-only file system|Permission denied: '(?!\S*\.(?:json|jinja|safetensors|bin|model)')",
        "a folder that the engine writes into cannot be written: {line}",
        WRITABLE_FOLDER,
    ),
    rule(
        "MissingLibrary",
        r"No module named 'plimsoll_runtime",
        "the engine's Python does not look where $PYTHONPATH says, and so does not find what has it close connections: {line}",
        "runtime.closeConnections: false in the operator's config, or an image whose vllm passes $PYTHONPATH on",
    ),
    rule(
        "MissingLibrary",
        r"(?P<what>lib[\w.+-]+\.so[\w.]*): (?:cannot open shared object file|file too short|invalid ELF header)"
        r"|error while loading shared libraries|'_OpNamespace' '_C\w*' object has no attribute"
        r"|CUDA error: no kernel image is available|Failed to find C compiler|nvcc: not found|RuntimeError: Could not find nvcc"
        r"|No such file or directory: '(?:\S*/)?(?:nvcc|ninja)'|Ninja is required to load C\+\+ extensions"
        r"|GLIBC(?:XX)?_[\d.]+' not found|undefined symbol|Failed to import Ray|ModuleNotFoundError: No module named '(?P<module>[^']+)'",
        "the image lacks something that the engine needs: {line}",
        "an image that has it: spec.engine.image",
    ),
)
