"""What the config classes of transformers say where a language model inside a larger config leaves a key out.

transformers wrote inner configs without the keys that equal their class's defaults, and like the engine fills them in where it reads them.
So these are no guesses. A config that stands alone states all of its keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Keys = Mapping[str, int | bool]


def _sizes(*, vocab: int, hidden: int, wide: int, layers: int, heads: int, positions: int) -> Keys:
    return {
        "vocab_size": vocab,
        "hidden_size": hidden,
        "intermediate_size": wide,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": positions,
    }


_LLAMA: Final = _sizes(vocab=32_000, hidden=4096, wide=11_008, layers=32, heads=32, positions=2048)
_QWEN: Final = {
    **_sizes(vocab=151_936, hidden=4096, wide=22_016, layers=32, heads=32, positions=32_768),
    "num_key_value_heads": 32,
    "use_sliding_window": False,
}
_GEMMA2: Final = {
    **_sizes(vocab=256_000, hidden=2304, wide=9216, layers=26, heads=8, positions=8192),
    "num_key_value_heads": 4,
    "head_dim": 256,
    "sliding_window": 4096,
}
DEFAULTS: Final[Mapping[str, Keys]] = {
    "llama": _LLAMA,
    "granite": _LLAMA,
    # Its default window is left out: many copies of such configs have lost the null that says that there is none.
    "mistral": {
        **_sizes(vocab=32_000, hidden=4096, wide=14_336, layers=32, heads=32, positions=131_072),
        "num_key_value_heads": 8,
    },
    "phi3": _sizes(vocab=32_064, hidden=3072, wide=8192, layers=32, heads=32, positions=4096),
    "qwen2": _QWEN,
    "qwen3": {**_QWEN, "head_dim": 128},
    "gemma": {
        **_sizes(vocab=256_000, hidden=3072, wide=24_576, layers=28, heads=16, positions=8192),
        "num_key_value_heads": 16,
        "head_dim": 256,
    },
    "gemma2": _GEMMA2,
    "gemma3_text": {**_GEMMA2, "vocab_size": 262_208, "max_position_embeddings": 131_072},
    "cohere2": {
        **_sizes(vocab=256_000, hidden=8192, wide=22_528, layers=40, heads=64, positions=8192),
        "sliding_window": 4096,
    },
}
"""By `model_type`, as of transformers 5.19. A default that other keys decide, like heads of an even share of the width, is left to the
readers."""
