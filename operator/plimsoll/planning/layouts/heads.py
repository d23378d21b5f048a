"""Whether tensor ranks can share out the heads of a model evenly. Each function says with the figures why not, or returns None."""

from __future__ import annotations

from plimsoll.facts.architecture import Architecture, Attention, LatentAttention, LinearAttention, Mamba


def uneven(architecture: Architecture, ranks: int) -> str | None:
    for layer, _ in architecture.kinds:
        mixer = layer.mixer
        if isinstance(mixer, Attention | LatentAttention) and mixer.heads % ranks:
            return f"{mixer.heads} attention heads do not divide by {ranks}"
    return None


def uneven_kv(architecture: Architecture, ranks: int) -> str | None:
    for layer, _ in architecture.kinds:
        mixer = layer.mixer
        if isinstance(mixer, Attention) and mixer.kv_heads % ranks and ranks % mixer.kv_heads:
            return f"{mixer.kv_heads} KV heads neither divide by {ranks} nor divide it, so ranks would differ"
    return None


def uneven_encoder(architecture: Architecture, ranks: int) -> str | None:
    for count in architecture.vision.heads if architecture.vision is not None else ():
        if count % ranks:
            return f"{count} attention heads of an encoder do not divide by {ranks}"
    return None


def uneven_states(architecture: Architecture, ranks: int) -> str | None:
    for layer, _ in architecture.kinds:
        mixer = layer.mixer
        if isinstance(mixer, Mamba) and mixer.heads % ranks:
            return f"{mixer.heads} state-space heads do not divide by {ranks}"
        if isinstance(mixer, LinearAttention):
            for name, count in (("key", mixer.key_heads), ("value", mixer.value_heads)):
                if count % ranks:
                    return f"{count} linear-attention {name} heads do not divide by {ranks}"
    return None
