"""The model: whether it is there, may be read, is known, and is whole."""

from __future__ import annotations

from plimsoll_runtime.remedies import FETCH_AGAIN
from plimsoll_runtime.rules.rule import START, rule

MODEL = (
    rule(
        "GatedModel",
        r"(?<!private or )gated repo|GatedRepo|40[13] Client Error|Client error '40[13]|Access to model .* is restricted",
        "the hub does not let this token read the model",
        "accept the model's terms, and name a token that may read it in spec.model.tokenSecret",
        START,
    ),
    rule(
        "ModelNotFound",
        r"Repository Not Found|Revision Not Found|is not a valid (?:model|git) identifier|Invalid repository ID or local directory"
        r"|No such file or directory: '(?P<what>[^']*(?:config\.json|params\.json))'|Entry Not Found|404 Client Error|Client error '404",
        "there is no such model: {line}",
        "correct spec.model.source and spec.model.revision; a private one also needs spec.model.tokenSecret",
        START,
    ),
    rule(
        "RemoteCode",
        r"trust_remote_code=True|contains custom code which must be executed",
        "the model brings code of its own, which is not trusted here",
        "spec.model.trustRemoteCode, where the admin's trust.remoteCode lists the repository",
        START,
    ),
    rule(
        "UnknownArchitecture",
        r"Model architectures? .* (?:are not supported|failed to be inspected)|does not recognize this architecture",
        "this release of the engine does not know the model's architecture: {line}",
        "a newer spec.engine.version",
        START,
    ),
    rule(
        "BadCheckpoint",
        r"SafetensorError|Error while deserializing header"
        r"|size mismatch for \S+: copying|There is no module or parameter named|were not initialized from checkpoint"
        r"|Cannot find any model weights|PytorchStreamReader failed|Missing keys .+ in loaded state|Attempted to load weight \("
        r"|referenced in index but missing|is not a valid JSON file|Can't load tokenizer|instantiate the backend tokenizer",
        "the model's files cannot be loaded: {line}",
        FETCH_AGAIN,
        START,
    ),
    rule(
        "BadCheckpoint",
        r"^(?:\([^)]*\) )*(?:ERROR [\d: -]+\[[^]]*\] )?\s*assert \S+\.(?:shape|size\(\)) == loaded_weight\.(?:shape|size\(\))",
        "a tensor of the model's files has another shape than its config.json says",
        FETCH_AGAIN,
        START,
    ),
    rule(
        "BadCheckpoint",
        r"(?:Value error, |JSONDecodeError: )(?P<what>.+: line \d+ column \d+)|codec can't decode byte",
        "one of the model's JSON files, or a header of its weights, cannot be read: {what}",
        FETCH_AGAIN,
        START,
    ),
    rule(
        "BadCheckpoint",
        r", in (?:parse_safetensors_file_metadata|_read_safetensors_metadata_in_dir)\b",
        "a safetensors file of the model begins with what is no header",
        FETCH_AGAIN,
        START,
    ),
    rule(
        "Download",
        r"name resolution|Name or service not known|Failed to resolve '|Max retries exceeded|Network is unreachable"
        r"|couldn't connect to|LocalEntryNotFound|outgoing traffic has been disabled|IncompleteRead|ReadTimeoutError"
        r"|CAS service error|CAS Client Error|5\d\d Server Error|Server error '5\d\d|429 (?:Client Error|Too Many Requests)|Client error '4\d\d|httpx\d?\.(?:Connect|Read|RemoteProtocol)\w+",
        "the model cannot be fetched: {line}",
        "let the pods reach the hub (proxy, mirror, NetworkPolicy, DNS), or keep the weights in a volume: spec.storage.weights",
        START,
    ),
)
