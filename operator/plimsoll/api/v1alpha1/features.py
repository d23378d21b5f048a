"""Optional abilities of a served model: adapters, speculation, media, tools, templates, long context."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field

from plimsoll.api.base import ApiModel, Bool, Int, ObjectName, Rule, Tokens, Word, field, listing
from plimsoll.api.v1alpha1.model import SecretKey
from plimsoll.api.v1alpha1.source import Revision, Source, climbs


def _whole(value: object) -> object:
    """True and 8.0 equal a rank, and so would pass for one."""
    if type(value) is not int:
        raise ValueError("must be a whole number, written without quotes or a point")
    return value


LoraRank = Annotated[Literal[1, 8, 16, 32, 64, 128, 256, 320, 512], BeforeValidator(_whole)]
Factor = Annotated[str, Field(max_length=16, pattern=r"^[1-9][0-9]{0,8}(\.[0-9]{1,6})?$")]
MediaCount = Annotated[Int, Field(ge=0, le=999)]
MOST_ADAPTERS: Final = 64


class Adapter(ApiModel):
    """One LoRA adapter, served under its own name."""

    rules: ClassVar[tuple[Rule, ...]] = (climbs("source"),)

    name: Word = Field(description="Name under which requests ask for it.")
    source: Source = Field(description="Where it is, spelled like model.source.")
    revision: Revision | None = field("Branch, tag or commit. Absent: the default branch.")


class Adapters(ApiModel):
    """LoRA adapters. Their slots cost GPU memory, which the ledger counts."""

    whole: ClassVar[bool] = True
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="adapters-cpu-at-least-gpu",
            cel="!has(self.maxOnHost) || !has(self.maxLoaded) || self.maxOnHost >= self.maxLoaded",
            holds=lambda m: m.max_on_host is None or m.max_loaded is None or m.max_on_host >= m.max_loaded,
            message="maxOnHost must be at least maxLoaded",
            field="maxOnHost",
        ),
        Rule(
            name="adapters-some",
            cel="(has(self.items) && size(self.items) > 0) || (has(self.runtimeLoading) && self.runtimeLoading)",
            holds=lambda m: bool(m.items) or m.runtime_loading is True,
            message="name at least one adapter under items, or set runtimeLoading",
            field="items",
        ),
    )

    items: tuple[Adapter, ...] = listing("The adapters.", most=MOST_ADAPTERS, keys=("name",))
    runtime_loading: Bool | None = field(
        "Change adapters while the engine runs, without a restart; by the supervisor (runtime.enabled of the "
        "admin's config). The first adapter on a claim (pvc://), and the last, still make a new set. Absent: false."
    )
    max_loaded: Annotated[Int, Field(ge=1, le=256)] | None = field(
        "Adapters that one batch may mix; each is a slot of GPU memory. Absent: the number of items, at most 8; with "
        "runtimeLoading 8."
    )
    max_on_host: Annotated[Int, Field(ge=1, le=4096)] | None = field(
        "Adapters kept in host memory. Absent: maxLoaded."
    )
    max_rank: LoraRank | None = field("Highest rank of any adapter. Absent: 16.")
    token_secret: SecretKey | None = field(
        "Secret with the access token for the adapters. Absent: the model's."
    )


class Speculative(ApiModel):
    """Guess several tokens ahead and check them in one step."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="speculative-model",
            cel="(self.method in ['draft', 'eagle', 'eagle3']) == has(self.model)",
            holds=lambda m: (m.method in ("draft", "eagle", "eagle3")) == (m.model is not None),
            message="model must be set for draft, eagle and eagle3, and only for them",
            field="model",
        ),
        Rule(
            name="speculative-lookup",
            cel="self.method == 'ngram' || (!has(self.lookupMin) && !has(self.lookupMax))",
            holds=lambda m: m.method == "ngram" or (m.lookup_min is None and m.lookup_max is None),
            message="lookupMin and lookupMax belong to method ngram",
            field="lookupMax",
        ),
        Rule(
            name="speculative-lookup-order",
            cel="!has(self.lookupMin) || !has(self.lookupMax) || self.lookupMin <= self.lookupMax",
            holds=lambda m: m.lookup_min is None or m.lookup_max is None or m.lookup_min <= m.lookup_max,
            message="lookupMin must not be above lookupMax",
            field="lookupMin",
        ),
        climbs("model", optional=True),
    )

    method: Literal["ngram", "draft", "eagle", "eagle3", "mtp"] = Field(
        description="ngram: from the prompt itself; draft: a smaller model with the same tokenizer; eagle, eagle3: a "
        "trained head; mtp: prediction layers of the checkpoint."
    )
    tokens: Annotated[Int, Field(ge=1, le=16)] | None = field(
        "Tokens guessed at a time. Absent: 4 by ngram and draft, 3 by eagle and eagle3, 1 by mtp."
    )
    model: Source | None = field(
        "The draft model or head, spelled like model.source; its weights count in the ledger."
    )
    revision: Revision | None = field("Branch, tag or commit of the draft model. Absent: the default branch.")
    tensor: Annotated[Int, Field(ge=1, le=64)] | None = field(
        "GPUs over which the draft is cut. Absent: as the model."
    )
    lookup_min: Annotated[Int, Field(ge=1, le=64)] | None = field(
        "Shortest run of tokens that ngram matches. Absent: the engine's own."
    )
    lookup_max: Annotated[Int, Field(ge=1, le=64)] | None = field(
        "Longest run of tokens that ngram matches. Absent: the engine's own."
    )


class Multimodal(ApiModel):
    """Limits for images, video and audio in one request. Each raises the profiled memory peak."""

    images: MediaCount | None = field("Images in a request; 0 refuses them. Absent: the engine's own limit.")
    videos: MediaCount | None = field("Videos in a request; 0 refuses them. Absent: as for images.")
    audios: MediaCount | None = field("Audio clips in a request; 0 refuses them. Absent: as for images.")
    text_only: Bool | None = field("Do not load the encoders at all: their memory becomes KV. Absent: false.")
    allowed_domains: tuple[ObjectName, ...] = listing(
        "Hosts from which media may be fetched by URL. Absent: none; media must come in the request.",
        most=32,
    )


class ToolCalling(ApiModel):
    """Turn the model's text into tool calls."""

    parser: Word = Field(
        description="Parser, as the engine spells it (hermes, llama3_json, qwen3_coder, ...)."
    )
    auto_choice: Bool | None = field("Let the model decide when to call a tool. Absent: true.")


class Reasoning(ApiModel):
    """Keep the model's thinking apart from its answer."""

    parser: Word = Field(description="Parser, as the engine spells it (deepseek_r1, qwen3, ...).")


class StructuredOutput(ApiModel):
    """Constrain answers to a grammar or schema."""

    backend: Word | None = field(
        "Backend, as the engine spells it (auto, xgrammar, guidance, outlines). Absent: auto."
    )


class ConfigMapKey(ApiModel):
    """One key of a ConfigMap in the deployment's own namespace."""

    name: ObjectName = Field(description="Name of the ConfigMap.")
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._A-Za-z0-9]+$")] = Field(
        description="Key in the ConfigMap."
    )


class ChatTemplate(ApiModel):
    """A chat template other than the model's own."""

    whole: ClassVar[bool] = True
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="template-one-source",
            cel="has(self.inline) != has(self.configMap)",
            holds=lambda m: (m.inline is None) != (m.config_map is None),
            message="exactly one of inline and configMap must be set",
        ),
    )

    inline: Annotated[str, Field(min_length=1, max_length=32768)] | None = field("The template's text.")
    config_map: ConfigMapKey | None = field("ConfigMap that holds the template.")


class LongContext(ApiModel):
    """Stretch the model's context by RoPE scaling."""

    rope_type: Literal["yarn", "linear", "dynamic", "llama3", "longrope"] = Field(
        description="Kind of scaling."
    )
    factor: Factor = Field(description='How many times the original context, at least 1, as "4.0".')
    original_tokens: Tokens | None = field("Context the model was trained for. Absent: read from its config.")
