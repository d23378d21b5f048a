"""Small hand-made architectures for planning's tests; figures are those of the public config files they are named after."""

from plimsoll.facts.architecture import (
    Architecture,
    Attention,
    DenseFfn,
    Ffn,
    Indexer,
    LatentAttention,
    Layer,
    LinearAttention,
    Mamba,
    Mixer,
    MoeFfn,
    Span,
)
from plimsoll.facts.dtypes import Dtype


def attention(kv_heads=8, head_dim=128, heads=64, window=None, chunk=None):
    span = Span.SLIDING if window else Span.CHUNKED if chunk else Span.FULL
    return Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        span=span,
        window=window or chunk,
    )


def architecture(
    mixers: list[Mixer | None],
    *,
    ffn: Ffn | None = None,
    hidden=4096,
    vocab=128256,
    name="TestForCausalLM",
    **others,
) -> Architecture:
    layers = tuple(Layer(mixer=mixer, ffn=ffn or DenseFfn(intermediate=14336)) for mixer in mixers)
    return Architecture(
        name=name,
        layers=layers,
        hidden=hidden,
        vocab=vocab,
        max_positions=131072,
        dtype=others.pop("dtype", Dtype.BFLOAT16),
        **others,
    )


def every(period: int, count: int, one: Mixer, others: Mixer) -> list[Mixer | None]:
    """`one` closes each period, `others` fill it."""
    return [one if (index + 1) % period == 0 else others for index in range(count)]


def llama_8b():
    return architecture([attention(heads=32)] * 32)


def llama_70b():
    return architecture([attention()] * 80, ffn=DenseFfn(intermediate=28672), hidden=8192)


def qwen3_30b():
    return architecture(
        [attention(kv_heads=4, heads=32)] * 48,
        ffn=MoeFfn(experts=128, top_k=8, intermediate=768),
        hidden=2048,
        vocab=151936,
    )


def qwen3_235b():
    return architecture(
        [attention(kv_heads=4)] * 94, ffn=MoeFfn(experts=128, top_k=8, intermediate=1536), vocab=151936
    )


def latent(indexer=False, **others):
    return LatentAttention(
        heads=128,
        kv_lora_rank=others.pop("kv_lora_rank", 512),
        q_lora_rank=1536,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        indexer=Indexer(heads=64, head_dim=128, top_k=2048) if indexer else None,
        **others,
    )


def deepseek_r1():
    return architecture(
        [latent()] * 61,
        ffn=MoeFfn(experts=256, top_k=8, intermediate=2048, shared_intermediate=2048),
        hidden=7168,
        vocab=129280,
    )


def deepseek_v32():
    return architecture([latent(indexer=True)] * 61, hidden=7168, vocab=129280)


def deepseek_v4_flash():
    def layer(ratio):
        return latent(indexer=ratio == 4, kv_lora_rank=448, window=128, compress_ratio=ratio)

    return architecture([layer(0)] * 2 + [layer(4), layer(128)] * 20 + [layer(4)], vocab=129280)


def glm_53_flash():
    """Latent layers whose scorer keeps one key for four tokens, among layers of delta attention."""
    scored = LatentAttention(
        heads=64,
        kv_lora_rank=512,
        q_lora_rank=1536,
        qk_nope_head_dim=256,
        qk_rope_head_dim=0,
        v_head_dim=256,
        indexer=Indexer(heads=32, head_dim=128, top_k=2048, pool=4),
    )
    linear = LinearAttention(
        key_heads=64,
        value_heads=64,
        key_dim=128,
        value_dim=128,
        conv_kernel=4,
        state_dtype=Dtype.FLOAT32,
        split_conv=True,
    )
    return architecture(every(4, 45, scored, linear), vocab=154880)


def gemma3_27b():
    return architecture(
        every(6, 62, attention(kv_heads=16), attention(kv_heads=16, window=1024)), hidden=5376, vocab=262208
    )


def gemma4_31b():
    return architecture(
        every(6, 60, attention(kv_heads=4, head_dim=512), attention(kv_heads=16, head_dim=256, window=1024)),
        hidden=5376,
        vocab=262144,
    )


def exaone4_32b():
    return architecture(every(4, 64, attention(), attention(window=4096)), hidden=5120, vocab=102400)


def llama4_maverick():
    return architecture(every(4, 48, attention(heads=40), attention(heads=40, chunk=8192)), hidden=5120)


def delta_net(key_heads=16, value_heads=32, state_dtype=Dtype.FLOAT32):
    return LinearAttention(
        key_heads=key_heads,
        value_heads=value_heads,
        key_dim=128,
        value_dim=128,
        conv_kernel=4,
        state_dtype=state_dtype,
    )


def qwen35_35b():
    return architecture(every(4, 40, attention(kv_heads=2, head_dim=256), delta_net()), hidden=2048)


def qwen3_coder_next():
    return architecture(
        every(4, 48, attention(kv_heads=2, head_dim=256), delta_net(state_dtype=Dtype.BFLOAT16)), hidden=2048
    )


def nemotron3_nano():
    mamba = Mamba(heads=64, head_dim=64, groups=8, state_size=128, conv_kernel=4, state_dtype=Dtype.FLOAT32)
    return architecture(
        [mamba] * 23 + [None] * 23 + [attention(kv_heads=2, heads=32)] * 6, hidden=2688, vocab=131072
    )
