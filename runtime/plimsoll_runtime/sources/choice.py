"""Which files of a repository an engine reads: one form of its weights, and all that is small. Repositories often hold several forms.

The same choice as vLLM makes: sharded files by their index, safetensors before pickles, the maker's own form where it is asked for. Where
nothing is asked for, vLLM (0.12 and later) takes the maker's own form for weights, config and tokenizer if it sees a file of those weights,
and it sees what the hub lists, or offline what lies here. So the common form alone is enough for an engine that asks nobody, and it keeps
chat templates, which the reader of the maker's own form ignores; unless there is no tokenizer beside the maker's `tekken.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plimsoll_runtime.sources.listing import File

WEIGHTS = (
    ".safetensors",
    ".bin",
    ".pt",
    ".pth",
    ".gguf",
    ".tensors",
    ".h5",
    ".msgpack",
    ".ot",
    ".tflite",
    ".onnx",
    ".onnx_data",
    ".ckpt",
)
OTHERS = (
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".webp",
    ".svg",
    ".mp4",
    ".mp3",
    ".wav",
    ".pdf",
    ".zip",
    ".tar",
    ".gz",
)
"""For people."""
INDEX = "model.safetensors.index.json"
OWN_INDEX = "consolidated.safetensors.index.json"
CONFIGS = ("config.json", "adapter_config.json")
"""A folder with one of these is a part of the model that is read by itself."""
TEKKEN, TOKENIZER = "tekken.json", "tokenizer.json"
PARTS_SHARE, PARTS_BYTES = 10, 4 * 2**30
"""A volume that ends with its pod has room for a tenth more than the weights, and for some besides."""
OF_TRAINING = ("training_args", "optimizer")
"""How files begin that end as weights do and hold none."""
_ALWAYS_OUT = (".gitattributes", ".gitignore", "original/", "onnx/", "openvino/", "coreml/", "metal/")

Names = Callable[[str], Sequence[str]]
"""The files that an index names, by the index's path."""


def chosen(
    files: Sequence[File], load_format: str | None, indexed: Names, *, asks: bool = False
) -> tuple[File, ...]:
    """The files to fetch, in the order of their names. Where no form of the weights is known to be the one that is read, all of them.
    `asks`: the engine will ask the hub too, and see all that is listed there."""
    kept = [file for file in files if not file.path.startswith(_ALWAYS_OUT)]
    weights = [file for file in kept if file.path.lower().endswith(WEIGHTS)]
    small = [file for file in kept if file not in weights and not file.path.lower().endswith(OTHERS)]
    names = {file.path for file in small}
    open_to_own = load_format in (None, "auto") and (asks or (TEKKEN in names and TOKENIZER not in names))
    asked = "mistral" if open_to_own and any(_is_own(file.path) for file in weights) else load_format
    wanted = _form([file.path for file in weights], asked, names, indexed)
    wanted |= _parts(weights, wanted, names)
    return tuple(
        sorted((*small, *(file for file in weights if file.path in wanted)), key=lambda file: file.path)
    )


def _form(paths: Sequence[str], load_format: str | None, small: set[str], indexed: Names) -> set[str]:
    if load_format == "dummy":
        return set()
    top = [path for path in paths if "/" not in path]
    safe = [path for path in top if path.endswith(".safetensors")]
    own = {path for path in safe if _is_own(path)}
    if load_format == "sharded_state":
        return set(safe)
    if load_format == "mistral" or (own and (own == set(safe) or "config.json" not in small)):
        return _of_index(OWN_INDEX, small, indexed) or own
    if load_format in ("gguf", "tensorizer", "bitsandbytes"):
        return set(paths)
    if load_format == "npcache":
        return {path for path in top if path.endswith(".bin")}
    if load_format != "pt" and safe:
        return _of_index(INDEX, small, indexed) or set(safe) - own
    for ends in ((".pt",),) if load_format == "pt" else ((".bin",), (".pt",)):
        found = {path for path in top if path.endswith(ends) and not path.startswith(OF_TRAINING)}
        if found:
            return found
    return set(paths)


def _parts(weights: Sequence[File], wanted: set[str], small: set[str]) -> set[str]:
    """Weights in folders of the model: layers behind an embedding, adapters, an encoder. Engines go on without them, with other answers. What
    weighs more than a quarter of the model is another form of it, as 4 bits are of 16, or an earlier state. The smallest come first, as far as
    there is room."""
    folders: dict[str, list[File]] = {}
    for file in weights:
        folder, _, name = file.path.rpartition("/")
        if folder and not name.startswith(OF_TRAINING) and any(f"{folder}/{one}" in small for one in CONFIGS):
            folders.setdefault(folder, []).append(file)
    whole = sum(file.size for file in weights if file.path in wanted)
    parts = []
    for files in folders.values():
        safe = [file for file in files if file.path.endswith(".safetensors")]
        part = safe or [file for file in files if file.path.endswith(".bin")]
        parts.append((sum(file.size for file in part), sorted(file.path for file in part)))
    found, left = set[str](), min(whole // 4, whole // PARTS_SHARE + PARTS_BYTES)
    for size, paths in sorted(parts):
        if size > left:
            break
        found, left = found.union(paths), left - size
    return found


def _is_own(path: str) -> bool:
    return path.startswith("consolidated") and path.endswith(".safetensors") and "/" not in path


def _of_index(index: str, small: set[str], indexed: Names) -> set[str]:
    return set(indexed(index)) if index in small else set()
