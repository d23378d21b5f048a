"""Which field of the resource a flag of the engine is: one row a flag, and the reason where there is no field.

Flags that only make sense together (LoRA, speculation, tools, media) are `features`'s; what neither knows is handed to
the engine as it stands.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from plimsoll.api.quantity import format_quantity
from plimsoll.cli.importing.argv import Given
from plimsoll.cli.importing.draft import Draft, ImportProblem
from plimsoll.cli.importing.sources import model_source
from plimsoll.cli.importing.values import (
    BadValueError,
    gibibytes,
    integer,
    parsed_json,
    percent,
    permille,
    size,
)
from plimsoll.facts.engine_flags import FlagKind

Reader = Callable[[Given], Any]


def _integer(given: Given) -> int:
    return integer(given.text)


def _size(given: Given) -> int:
    return size(given.text)


def _bytes(given: Given) -> str:
    return format_quantity(size(given.text))


def _text(given: Given) -> str:
    return given.text


def _on(given: Given) -> bool:
    return given.on


def _names(given: Given) -> list[str]:
    return list(dict.fromkeys(given.words))


FIELDS: Mapping[str, tuple[str, Reader]] = {
    "--attention-backend": ("engine.attentionBackend", _text),
    "--block-size": ("engine.blockTokens", _integer),
    "--data-parallel-size": ("topology.data", _integer),
    "--enable-eplb": ("topology.expertBalancing", _on),
    "--enable-expert-parallel": ("topology.expertParallel", _on),
    "--enable-prefix-caching": ("engine.prefixCaching", _on),
    "--enable-sleep-mode": ("engine.sleepMode", _on),
    "--enforce-eager": ("engine.eager", _on),
    "--kv-cache-dtype": ("memory.kvCacheDtype", _text),
    "--kv-cache-memory-bytes": ("memory.kvCacheSize", _bytes),
    "--load-format": ("model.loadFormat", _text),
    "--max-num-batched-tokens": ("engine.maxBatchedTokens", _size),
    "--max-num-queued-reqs": ("engine.maxQueuedRequests", _integer),
    "--max-num-seqs": ("engine.maxSequences", _integer),
    "--pipeline-parallel-size": ("topology.pipeline", _integer),
    "--quantization": ("quantization.method", _text),
    "--reasoning-parser": ("reasoning.parser", _text),
    "--revision": ("model.revision", _text),
    "--scheduling-policy": ("engine.schedulingPolicy", _text),
    "--served-model-name": ("model.servedNames", _names),
    "--shutdown-timeout": ("rollout.drainSeconds", _integer),
    "--tensor-parallel-size": ("topology.tensor", _integer),
    "--trust-remote-code": ("model.trustRemoteCode", _on),
    "--language-model-only": ("multimodal.textOnly", _on),
    "--allowed-media-domains": ("multimodal.allowedDomains", _names),
}

_ADDRESS = (
    "Plimsoll sets the address that the engine listens on; networking.service.port is the Service's port"
)
_GROUP = "Plimsoll writes it for each pod of a replica that spans nodes"
_CERTIFICATE = "certificates come from a Secret: name it in networking.tlsSecret"

LOST: Mapping[str, str] = {
    "--api-key": "keys have no place in a resource: put it into a Secret and name that in networking.apiKeySecret",
    "--config": "the file is not here; import its own text, which is read as well",
    "--data-parallel-address": _GROUP,
    "--data-parallel-backend": _GROUP,
    "--data-parallel-rank": _GROUP,
    "--data-parallel-rpc-port": _GROUP,
    "--data-parallel-size-local": _GROUP,
    "--data-parallel-start-rank": _GROUP,
    "--device-ids": "the device plugin says which devices a pod has",
    "--disable-log-stats": "it takes away the metrics that scaling and status are made from",
    "--download-dir": "spec.storage says where weights live",
    "--headless": _GROUP,
    "--hf-token": "tokens have no place in a resource: put it into a Secret and name that in model.tokenSecret",
    "--host": _ADDRESS,
    "--master-addr": _GROUP,
    "--master-port": _GROUP,
    "--nnodes": _GROUP,
    "--node-rank": _GROUP,
    "--num-gpu-blocks-override": "it is for tests: the ledger computes the pool, or memory.kvCacheSize fixes it",
    "--port": _ADDRESS,
    "--ssl-ca-certs": _CERTIFICATE,
    "--ssl-certfile": _CERTIFICATE,
    "--ssl-keyfile": _CERTIFICATE,
    "--uds": _ADDRESS,
}


def _context(draft: Draft, given: Given) -> None:
    if given.text in ("auto", "-1"):
        draft.drop(given.what, "nothing: an absent workload.contextTokens is derived from workload and model")
    else:
        draft.put("workload.contextTokens", size(given.text), given.what)


def _utilization(draft: Draft, given: Given) -> None:
    _put_whole(
        draft, given, "memory.utilizationPercent", percent, "percentages are whole here: rounded down to"
    )


def _watermark(draft: Draft, given: Given) -> None:
    _put_whole(draft, given, "engine.watermarkPermille", permille, "it is in whole thousandths here:")


def _put_whole(
    draft: Draft, given: Given, path: str, read: Callable[[str], tuple[int, bool]], said: str
) -> None:
    """A share, and that it is not exact where it is not."""
    whole, cut = read(given.text)
    if cut:
        draft.translate(path, whole, given.what, f"{said} {whole}")
    else:
        draft.put(path, whole, given.what)


def _cpu_offload(draft: Draft, given: Given) -> None:
    amount = gibibytes(given.text)
    if amount is None:
        draft.drop(given.what, "nothing: 0 offloads nothing")
    else:
        draft.put("memory.cpuOffload", amount, given.what)


def _executor(draft: Draft, given: Given) -> None:
    if given.text in ("mp", "ray"):
        draft.put("topology.executor", given.text, given.what)
    else:
        draft.lose(
            given.what, "topology.executor knows mp and ray; within one pod the engine chooses by itself"
        )


def _balancing(mode: str) -> Callable[[Draft, Given], None]:
    def write(draft: Draft, given: Given) -> None:
        if given.on:
            draft.put("topology.dataMode", mode, given.what)
        else:
            draft.drop(given.what, "nothing: it is off by default")

    return write


def _origins(draft: Draft, given: Given) -> None:
    origins = parsed_json(given.text)
    if not isinstance(origins, list) or not all(isinstance(origin, str) for origin in origins):
        raise BadValueError(f"{given.text!r} is not a JSON list of origins")
    if origins == ["*"]:
        draft.lose(given.what, "networking.corsOrigins names origins one by one, and * is all of them")
    elif origins:
        draft.put("networking.corsOrigins", origins, given.what)
    else:
        draft.drop(given.what, "nothing: no origin is allowed by default")


def _log_requests(draft: Draft, given: Given) -> None:
    if given.on:
        draft.pass_on(("--enable-log-requests",), given.what)
    else:
        draft.drop(given.what, "nothing: requests are not logged by default")


def _tokenizer(draft: Draft, given: Given) -> None:
    try:
        draft.put("model.tokenizer", model_source(given.text, draft.mounts), given.what)
    except ImportProblem as problem:
        draft.lose(given.what, str(problem))


SPECIAL: Mapping[str, Callable[[Draft, Given], None]] = {
    "--allowed-origins": _origins,
    "--cpu-offload-gb": _cpu_offload,
    "--data-parallel-external-lb": _balancing("external"),
    "--data-parallel-hybrid-lb": _balancing("hybrid"),
    "--distributed-executor-backend": _executor,
    "--enable-log-requests": _log_requests,
    "--gpu-memory-utilization": _utilization,
    "--max-model-len": _context,
    "--tokenizer": _tokenizer,
    "--watermark": _watermark,
}


# Flags that bring in values which no list holds, by the flag whose values they extend.
_PLUGINS: Mapping[str, str] = {"--reasoning-parser": "--reasoning-parser-plugin"}


def write_flag(draft: Draft, given: Given) -> None:
    """Give one flag its place: a field, an extra argument, or a reason why it has none."""
    flag = given.flag
    if given.abbreviated:
        draft.warn(f"{given.spelling} was read as {flag.name}; a later release may refuse the short form")
    if given.inline and flag.kind is FlagKind.BOOL:
        draft.warn(
            f"{given.what} was written with a value, which the engine refuses; it was read as a switch"
        )
    if any("{{" in word for word in given.words) and flag.name != "--chat-template":
        draft.lose(given.what, "it is a template, and what fills it in is not here")
        return
    refusal = _refusal(draft, given)
    if refusal is not None:
        draft.lose(given.what, refusal)
        return
    try:
        if flag.name in LOST:
            draft.lose(given.what, LOST[flag.name])
        elif flag.name in SPECIAL:
            SPECIAL[flag.name](draft, given)
        elif flag.name in FIELDS and given.path is None:
            path, read = FIELDS[flag.name]
            draft.put(path, read(given), given.what)
        else:
            draft.pass_on(spelled_out(given), given.what)
    except BadValueError as error:
        draft.lose(given.what, str(error))


def _refusal(draft: Draft, given: Given) -> str | None:
    """Why the engine would not start with this value; None where it would, as far as its parser's lists say."""
    flag = given.flag
    if not given.words or given.path is not None:
        return None
    if flag.kind in (FlagKind.INT, FlagKind.FLOAT):
        for word in given.words:
            try:
                (int if flag.kind is FlagKind.INT else float)(word)
            except ValueError:
                return f"{word!r} is not {'a whole number' if flag.kind is FlagKind.INT else 'a number'}"
    stale = draft.facts.profile.stale_values.get(flag.name, {})
    allowed = flag.choices or flag.values
    for word in given.words:
        known = word in allowed or word.upper() in allowed
        if word in stale and not known:
            return f"vLLM {draft.facts.facts_version} does not know {word}; use {stale[word]}"
        if flag.choices and not known:
            return f"vLLM {draft.facts.facts_version} takes one of {', '.join(flag.choices)}"
        if flag.values and not known and _PLUGINS.get(flag.name) not in draft.said:
            told = difflib.get_close_matches(word, flag.values, n=3) or flag.values
            return f"vLLM {draft.facts.facts_version} would not start with it; it knows {', '.join(told)}"
    return None


def spelled_out(given: Given) -> tuple[str, ...]:
    """The words with which the engine is told the same, in full spelling."""
    flag = given.flag
    if flag.kind is FlagKind.BOOL and given.path is None:
        if given.on:
            return (flag.name,)
        opposite = f"--no-{flag.name.removeprefix('--')}"
        return (opposite,) if opposite in flag.also else ()
    name = flag.name if given.path is None else f"{flag.name}.{given.path}"
    words = tuple(_ascii(word) for word in given.words)
    if words and words[0].startswith("-"):
        return (f"{name}={words[0]}", *words[1:])
    return (name, *words)


def _ascii(word: str) -> str:
    """JSON words keep their meaning in plain ASCII; others are left to the check of the resource."""
    if word.isascii():
        return word
    return word.encode("ascii", "backslashreplace").decode() if word[:1] in "{[" else word
