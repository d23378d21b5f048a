"""The rules by which a layout is turned down before any memory is counted, in one ordered registry.

A rule is a small function of a layout and of what is asked. It returns a sentence with the figures that turn the layout down, or
None. The first rule with a sentence names the rejection. Rules go by architecture, quantization format, link and GPU class, never by
a model's name. `heads` has the rules about heads that ranks share out, `shards` those about shapes of quantized shards, `readable` those
about formats that a GPU cannot read. Memory is counted after all rules, by the ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

from plimsoll.facts.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    LinearAttention,
    Mamba,
    Mixer,
    MoeFfn,
    Span,
)
from plimsoll.facts.engine_versions import Version
from plimsoll.facts.gpus import Gpu, LinkKind, Vendor
from plimsoll.planning.layouts import heads, readable, shards
from plimsoll.planning.layouts.layout import Layout

CONTEXT_PARALLEL_FLAG: Final = "--decode-context-parallel-size"
ENCODER_FLAG: Final = "--mm-encoder-tp-mode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user fixed about the layout; None is left to the planner."""

    tensor: int | None = None
    pipeline: int | None = None
    data: int | None = None
    expert_parallel: bool | None = None
    expert_balancing: bool = False
    interconnect: str | None = None


@dataclass(frozen=True, kw_only=True)
class Site:
    """What the devices of one kind offer to a layout: of each figure the best among all pools that have them."""

    gpu: Gpu
    devices_per_node: int
    """Devices of the largest node."""
    devices: int
    """Devices of the largest pool, free or not: no replica can have more."""
    fabric_devices: int = 0
    """Devices of the largest NVLink domain that joins nodes; 0 where there is none."""
    sharing: int = 1
    partition: str | None = None
    rdma: bool = False
    """True where the nodes of every pool say that they have RDMA between nodes."""

    @cached_property
    def joined(self) -> int:
        """The most devices that one fast fabric joins: those of a board, or of an NVLink domain over nodes."""
        if self.gpu.link.kind in (LinkKind.PCIE, LinkKind.HOST):
            return 1
        return max(min(self.gpu.link.domain, self.devices_per_node), self.fabric_devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the rules know of the model, the engine and the user's wishes."""

    architecture: Architecture
    wishes: Wishes
    generates: bool = True
    context_parallel: bool = True
    """Whether the engine's version can shard the cache over decode ranks."""
    largest: int | None = None
    """The most devices of one replica that a budget allows; None is no limit."""
    share: Fraction | None = None
    """The part of a shared device that the user asks for."""
    kv_dtype: str | None = None
    """The engine's word for the cache format that the user asks for or that the checkpoint has scales for; None is the model's own dtype."""
    release: Version | None = None
    """The engine's release; None where its version names none, which then counts as a new one."""
    own_image: bool = False
    """Whether somebody brings an image of their own, which may be built for other GPUs."""
    head_in_stages: bool = True
    """Whether the engine's version can run the head that guesses tokens beside pipeline stages."""
    encoder_cut: bool = True
    """Whether ranks share out the encoders that the engine cuts; False where the user has them left whole."""
    draft: Architecture | None = None
    """The draft model or head that guesses tokens."""
    draft_tensor: int | None = None
    """The ranks that the user asks to cut it over."""
    tensors: tuple[int, ...] = ()
    """Tensor sizes that the model and its format allow, whatever the devices, the smallest first."""


ModelRule = Callable[[Layout, Question], str | None]
SiteRule = Callable[[Layout, Question, Site], str | None]


def asked(layout: Layout, question: Question) -> str | None:
    wishes = question.wishes
    for name, wish, value in (
        ("tensor", wishes.tensor, layout.tensor),
        ("pipeline", wishes.pipeline, layout.pipeline),
        ("data", wishes.data, layout.data),
    ):
        if wish is not None and wish != value:
            return f"topology.{name} asks for {wish}"
    if wishes.expert_parallel is not None and wishes.expert_parallel != layout.expert_parallel:
        return f"topology.expertParallel is {str(wishes.expert_parallel).lower()}"
    return None


def attention_heads(layout: Layout, question: Question) -> str | None:
    return heads.uneven(question.architecture, layout.tensor)


def kv_heads(layout: Layout, question: Question) -> str | None:
    return heads.uneven_kv(question.architecture, layout.tensor)


def draft_heads(layout: Layout, question: Question) -> str | None:
    """A draft's layers are on the model's own ranks, even where speculative.tensor asks for one."""
    cut, draft = question.draft_tensor, question.draft
    if cut not in (None, 1, layout.tensor):
        return f"speculative.tensor asks for {cut}; a draft is cut over 1 rank or over all {layout.tensor}"
    if draft is None:
        return None
    why = heads.uneven(draft, layout.tensor) or heads.uneven_kv(draft, layout.tensor)
    return why and f"the draft's {why}"


def encoder_heads(layout: Layout, question: Question) -> str | None:
    return heads.uneven_encoder(question.architecture, layout.tensor) if question.encoder_cut else None


def state_heads(layout: Layout, question: Question) -> str | None:
    return heads.uneven_states(question.architecture, layout.tensor)


def experts(layout: Layout, question: Question) -> str | None:
    if not layout.expert_parallel:
        return None
    counts = [layer.ffn.experts for layer, _ in question.architecture.kinds if isinstance(layer.ffn, MoeFfn)]
    if not counts:
        return "the model has no experts to spread"
    if layout.expert_ranks == 1:
        return "one rank holds all experts anyway"
    if min(counts) < layout.expert_ranks:
        return f"{min(counts)} experts cannot be spread over {layout.expert_ranks} ranks"
    uneven = next((count for count in counts if count % layout.expert_ranks), None)
    if uneven is not None and question.wishes.expert_balancing:
        return (
            f"topology.expertBalancing moves experts only between ranks that have as many each, and {uneven} do not divide by "
            f"{layout.expert_ranks}"
        )
    return None


def expert_width(layout: Layout, question: Question) -> str | None:
    if layout.expert_parallel:
        return None
    for layer, _ in question.architecture.kinds:
        if isinstance(layer.ffn, MoeFfn) and layer.ffn.intermediate % layout.expert_ranks:
            return (
                f"experts {layer.ffn.intermediate} wide cannot be cut over {layout.expert_ranks} ranks "
                f"({layout.tensor} tensor x {layout.data} data); whole experts would have to be spread"
            )
    return None


def dense_data(layout: Layout, question: Question) -> str | None:
    if layout.data > 1 and not question.architecture.is_moe:
        return f"data ranks of a model without experts are replicas: {layout.data} replicas do the same"
    return None


def pipeline_support(layout: Layout, question: Question) -> str | None:
    if layout.pipeline > 1 and not question.architecture.supports_pipeline:
        return f"the engine cannot cut {question.architecture.name} into pipeline stages"
    return None


def pipeline_guesses(layout: Layout, question: Question) -> str | None:
    if layout.pipeline > 1 and not question.head_in_stages:
        return "this engine version cannot cut an eagle head into pipeline stages"
    return None


def pipeline_layers(layout: Layout, question: Question) -> str | None:
    layers = len(question.architecture.layers)
    if layout.pipeline > layers:
        return f"{layers} layers cannot fill {layout.pipeline} stages"
    return None


def context_parallel(layout: Layout, question: Question) -> str | None:
    ways = layout.decode_context
    if ways == 1:
        return None
    if not question.context_parallel:
        return "this engine version cannot shard the cache over decode ranks"
    if layout.tensor % ways:
        return f"{ways} cache shards do not divide {layout.tensor} tensor ranks"
    for layer, _ in question.architecture.kinds:
        mixer = layer.mixer
        if isinstance(mixer, Mamba | LinearAttention):
            return "layers of fixed state have no tokens to shard"
        reach = _reach(mixer)
        if reach is not None:
            return f"layers that keep only the last {reach:,} tokens cannot be sharded"
        if isinstance(mixer, Attention):
            copies = layout.tensor // mixer.kv_heads
            if ways > copies:
                return f"{layout.tensor} ranks hold {max(1, copies)} copies of {mixer.kv_heads} KV heads; no {ways} shards"
            if (mixer.heads // mixer.kv_heads) % ways:
                return f"{mixer.heads // mixer.kv_heads} query heads a KV head do not divide by {ways}"
    return None


def _reach(mixer: Mixer | None) -> int | None:
    """How many tokens a layer keeps, where that is not all of them. The engine asserts that no cache that it shards is of this kind."""
    match mixer:
        case Attention(span=Span.SLIDING | Span.CHUNKED, shares_cache=False) | LatentAttention():
            return mixer.window
    return None


def budget(layout: Layout, question: Question) -> str | None:
    if question.largest is not None and layout.gpus > question.largest:
        return f"{layout.gpus} GPUs are more than the namespace's budget of {question.largest}"
    return None


def share(layout: Layout, question: Question, site: Site) -> str | None:
    del layout
    asked = question.share
    if asked is None or site.sharing == 1 or asked <= Fraction(1, site.sharing):
        return None
    return (
        f"memory.tenancySharePercent asks for {float(asked):.0%} of a device whose time is shared by {site.sharing}; at most "
        f"one part of {site.sharing} is its own, unequal parts need MIG or DRA"
    )


def partitioned(layout: Layout, question: Question, site: Site) -> str | None:
    del question
    if layout.gpus == 1:
        return None
    if site.partition is not None:
        return f"ranks on {site.partition} partitions cannot reach each other's memory"
    if site.sharing > 1:
        return f"two of {layout.gpus} ranks could land on one device shared by {site.sharing}"
    if site.gpu.vendor is Vendor.CPU:
        return "a CPU replica is one process; replicas add up instead"
    return None


def pcie(layout: Layout, question: Question, site: Site) -> str | None:
    wanted = question.wishes.tensor is not None
    if layout.tensor > 2 and site.gpu.link.kind is LinkKind.PCIE and not wanted:
        return (
            f"{layout.tensor} tensor ranks would exchange every layer over PCIe; 2 is the most that pays "
            f"(write topology.tensor: {layout.tensor} to do it all the same)"
        )
    return None


def nvlink_domain(layout: Layout, question: Question, site: Site) -> str | None:
    if site.gpu.link.kind is LinkKind.PCIE or layout.tensor <= max(1, site.joined):
        return None
    if question.wishes.tensor is not None and layout.tensor <= site.devices_per_node:
        return None
    return f"{layout.tensor} tensor ranks are more than the {site.joined} devices that one fast link domain joins"


def node(layout: Layout, question: Question, site: Site) -> str | None:
    del question
    if layout.tensor > max(site.devices_per_node, site.fabric_devices):
        return f"{layout.tensor} tensor ranks are more than the {site.devices_per_node} GPUs of a node"
    return None


def pool(layout: Layout, question: Question, site: Site) -> str | None:
    del question
    if layout.gpus > site.devices:
        return f"{layout.gpus} GPUs a replica are more than the {site.devices} of the largest pool"
    return None


def interconnect(layout: Layout, question: Question, site: Site) -> str | None:
    wanted = question.wishes.interconnect
    if wanted in (None, "pcie") or layout.gpus == 1:
        return None
    if wanted == "nvlink" and layout.tensor > site.joined:
        return f"topology.interconnect nvlink: {layout.tensor} ranks, but {site.joined} devices joined"
    if wanted == "nvlink-domain" and layout.gpus > site.joined:
        return f"topology.interconnect nvlink-domain: {layout.gpus} GPUs, but {site.joined} devices in one domain"
    if wanted == "rdma" and layout.gpus > site.devices_per_node and not site.rdma:
        return "topology.interconnect rdma: the replica spans nodes, and their labels do not say that they have RDMA"
    return None


def weight_format(layout: Layout, question: Question, site: Site) -> str | None:
    del layout
    unread = readable.unread_weights(question.architecture.quantization, question.release, site.gpu)
    return unread or (readable.widened(question.architecture, site.gpu) if question.generates else None)


def engine_kernels(layout: Layout, question: Question, site: Site) -> str | None:
    del layout
    return None if question.own_image else readable.unrun(question.release, site.gpu)


def cache_format(layout: Layout, question: Question, site: Site) -> str | None:
    del layout
    return readable.unread_cache(question.architecture, question.kv_dtype, question.release, site.gpu)


def pipeline_in_node(layout: Layout, question: Question, site: Site) -> str | None:
    """Pipeline stages inside one fast link domain do not pay: each token waits for one stage after the other, while tensor ranks all work
    on it at once. Stages are for crossing nodes or slow links."""
    if layout.pipeline == 1 or question.wishes.pipeline is not None:
        return None
    for tensor in question.tensors:
        if layout.tensor * layout.pipeline <= tensor <= min(site.joined, site.devices_per_node):
            return f"tp{tensor} stays inside one link domain of {site.joined} and has all its GPUs at work on every token"
    return None


MODEL_RULES: Final[tuple[tuple[str, ModelRule], ...]] = (
    ("asked", asked),
    ("heads", attention_heads),
    ("kv-heads", kv_heads),
    ("draft-heads", draft_heads),
    ("encoder-heads", encoder_heads),
    ("state-heads", state_heads),
    ("experts", experts),
    ("expert-width", expert_width),
    ("dense-data", dense_data),
    ("pipeline-support", pipeline_support),
    ("pipeline-guesses", pipeline_guesses),
    ("pipeline-layers", pipeline_layers),
    ("context-parallel", context_parallel),
    ("budget", budget),
)
FORMAT_RULES: Final[tuple[tuple[str, SiteRule], ...]] = (
    ("weight-format", weight_format),
    ("cache-format", cache_format),
    ("engine-kernels", engine_kernels),
)
"""Rules that the GPU alone decides, wherever it is and however the model is cut."""
PLACE_RULES: Final[tuple[tuple[str, SiteRule], ...]] = (
    ("share", share),
    ("partitioned", partitioned),
    ("pcie", pcie),
    ("node", node),
    ("nvlink-domain", nvlink_domain),
    ("pool", pool),
    ("interconnect", interconnect),
    ("pipeline-in-node", pipeline_in_node),
)
SITE_RULES: Final = (*FORMAT_RULES, *PLACE_RULES)


def first_refusal(layout: Layout, question: Question) -> tuple[str, str] | None:
    """The first rule about the model, the wishes or the format that turns a layout down on any devices, and its sentence."""
    for name, rule in MODEL_RULES:
        message = rule(layout, question)
        if message is not None:
            return name, message
    return shards.refused(question.architecture, layout)


def refusal_on(
    layout: Layout,
    question: Question,
    site: Site,
    rules: tuple[tuple[str, SiteRule], ...] = SITE_RULES,
) -> tuple[str, str] | None:
    """The first rule that turns a layout down on some devices, and its sentence. `first_refusal` has those that hold on any devices."""
    for name, rule in rules:
        message = rule(layout, question, site)
        if message is not None:
            return name, message
    return None
