"""The encoder of sounds beside a language model, of Whisper's kind: convolutions over a spectrum, then attention.

Others (conformers above all) state their widths but not their shape: what they weigh is not known, and `audio_config` is
listed as assumed.
"""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.facts.architecture import VisionEncoder
from plimsoll.facts.configs.fields import Fields

_WHERE = ("audio_config", "audio_encoder_config", "audio_processor", "encoder_config")
_HIDDEN = ("d_model", "hidden_size")
_LAYERS = ("encoder_layers", "num_hidden_layers")
_HEADS = ("encoder_attention_heads", "num_attention_heads")
_WIDTH = ("encoder_ffn_dim", "intermediate_size")


def audio_encoder(config: Mapping[str, object], text_hidden: int, assumed: list[str]) -> VisionEncoder | None:
    outer = Fields(config, assumed)
    inner = outer.within(*_WHERE)
    if not inner.raw:
        thinker = outer.mapping("thinker_config")
        return audio_encoder(thinker, text_hidden, assumed) if thinker else None
    hidden, layers = inner.integer(*_HIDDEN, least=1), inner.integer(*_LAYERS, least=1)
    width, bands = inner.integer(*_WIDTH, least=1), inner.integer("num_mel_bins", least=1)
    if hidden is None or layers is None or width is None or bands is None:
        assumed.append("audio_config")
        return None
    assumed.append("vision.max_item_tokens")
    positions = inner.integer("max_source_positions", least=1) or 1500
    # The engine's own encoder of this kind is cut; those of others it takes from Transformers, or leaves whole where it has to.
    heads = inner.integer(*_HEADS, least=1) if outer.model_type.startswith("voxtral") else None
    blocks = layers * (4 * hidden * hidden + 2 * hidden * width)
    return VisionEncoder(
        parameters=blocks + _ears(inner, hidden, bands) + positions * hidden + _projector(inner, hidden, width, text_hidden),
        hidden=hidden,
        layers=layers,
        max_item_tokens=positions // 2,
        heads=() if heads is None else (heads,),
    )  # fmt: skip


def _ears(inner: Fields, hidden: int, bands: int) -> int:
    """Two convolutions of three steps over the spectrum, or three in the plane and a matrix after them."""
    flat = inner.integer("downsample_hidden_size", least=1)
    if flat is None:
        return 3 * bands * hidden + 3 * hidden * hidden
    return 9 * flat + 2 * 9 * flat * flat + flat * -(-bands // 8) * hidden


def _projector(inner: Fields, hidden: int, width: int, text: int) -> int:
    if inner.integer("output_dim", least=1):
        return hidden * hidden + hidden * text
    if inner.model_type.startswith("voxtral"):  # four steps become one
        return width * text + text * text
    return hidden * text
