"""Every way to a model's facts, and what is said where a way ends. The hub is a small server on this machine."""

import json
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from plimsoll.api.v1alpha1.model import InlineArchitecture, ModelSpec
from plimsoll.facts.model import Certainty
from plimsoll.facts.models import lookup
from plimsoll.facts.resolve import (
    HubAccess,
    ModelNeedsFactsPod,
    ModelUnknown,
    Resolver,
    facts_from_folder,
)
from tests.facts.known_models import known

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 128,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
TENSORS = {
    "model.embed_tokens.weight": ("BF16", [100, 64]),
    "model.layers.0.mlp.up_proj.weight": ("BF16", [128, 64]),
}
SHA = "0123456789abcdef0123456789abcdef01234567"


def inline(config: str, size: str | None = None) -> InlineArchitecture:
    return InlineArchitecture(config=config, weight_bytes=size)


def facts_of(folder: Any) -> Any:
    return facts_from_folder(folder)


def safetensors(tensors):
    header = {
        name: {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]}
        for name, (dtype, shape) in tensors.items()
    }
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


class Hub(BaseHTTPRequestHandler):
    """Answers what the hub's client asks for one small repository, a gated one and a broken one."""

    files: ClassVar = {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": safetensors(TENSORS)}
    asked: ClassVar[list[str]] = []

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, *, body):
        self.path = "/" + self.path.split("/", 3)[3] if self.path.startswith("http://") else self.path
        self.asked.append(f"{self.command} {self.path} {self.headers.get('authorization')}")
        if "/org/gated" in self.path:
            return self.reply(403, b"{}", {"X-Error-Code": "GatedRepo"}, body=body)
        if "/org/broken" in self.path:
            return self.reply(500, b"{}", {}, body=body)
        if "/org/tiny" not in self.path:
            return self.reply(401, b"{}", {"X-Error-Code": "RepoNotFound"}, body=body)
        if "/revision/nowhere" in self.path:
            return self.reply(404, b"{}", {"X-Error-Code": "RevisionNotFound"}, body=body)
        if self.path.startswith("/api/models/"):
            listed = {"id": "org/tiny", "sha": SHA, "siblings": [{"rfilename": name} for name in self.files]}
            return self.reply(
                200, json.dumps(listed).encode(), {"Content-Type": "application/json"}, body=body
            )
        content = self.files.get(self.path.rpartition("/")[2])
        if content is None:
            return self.reply(404, b"{}", {"X-Error-Code": "EntryNotFound"}, body=body)
        return self.reply(200, content, {"ETag": '"e"', "X-Repo-Commit": SHA}, body=body)

    def reply(self, status, content, headers, *, body):
        span = self.headers.get("range")
        if span and status == 200:
            first, _, last = span.removeprefix("bytes=").partition("-")
            status, content = 206, content[int(first) : int(last or len(content)) + 1]
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    Hub.asked.clear()
    yield HubAccess(endpoint=f"http://127.0.0.1:{server.server_port}", token="hf_secret", timeout_seconds=60)
    server.shutdown()
    server.server_close()


def test_the_catalogue_answers_without_a_network():
    facts = Resolver().resolve(ModelSpec(source="hf://Qwen/Qwen3-32B"))
    assert (facts.origin, facts) == ("catalogue", lookup("Qwen/Qwen3-32B"))


def test_offline_a_model_nobody_knows_says_what_would_help():
    with pytest.raises(ModelUnknown, match=r"\(offline\)") as caught:
        Resolver().resolve(ModelSpec(source="org/unknown"))
    assert "spec.model.architecture.config" in str(caught.value)
    assert "local folder" in str(caught.value)
    assert "plimsoll models" in str(caught.value)


def test_inline_text_beats_everything_else():
    spec = ModelSpec(source="hf://Qwen/Qwen3-32B", architecture=inline(json.dumps(CONFIG)))
    facts = Resolver().resolve(spec)
    assert (facts.origin, facts.architecture.hidden, facts.source) == ("inline", 64, "hf://Qwen/Qwen3-32B")


def test_an_inline_size_is_kept_to_the_byte():
    spec = ModelSpec(source="s3://b/m", architecture=inline(json.dumps(CONFIG), "1Gi"))
    facts = Resolver().resolve(spec)
    assert (facts.weights.total, facts.weights.certainty) == (1 << 30, Certainty.CALIBRATED)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{]", "is not JSON"),
        ("[1, 2]", "holds a list"),
        ("{}", "hidden_size is missing"),
        ("[" * 60_000, "is not JSON"),
        (json.dumps({**CONFIG, "num_hidden_layers": "🦙"}), "num_hidden_layers is '🦙'"),
    ],
)
def test_inline_text_that_is_no_config_says_why(text, told):
    with pytest.raises(ModelUnknown, match=told):
        Resolver().resolve(ModelSpec(source="s3://b/m", architecture=inline(text)))


def test_a_folder_gives_exact_bytes_from_its_headers(folder):
    (folder / "model.safetensors").write_bytes(safetensors(TENSORS))
    facts = facts_from_folder(folder)
    assert (facts.origin, facts.weights.certainty) == ("folder", Certainty.EXACT)
    assert (facts.weights.embedding, facts.weights.ffn) == (100 * 64 * 2, 128 * 64 * 2)


def test_a_folder_with_an_index_reads_the_files_it_names(folder):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "one.safetensors"}}))
    (folder / "one.safetensors").write_bytes(safetensors({"a.mlp.up_proj.weight": ("F16", [2, 2])}))
    (folder / "consolidated.safetensors").write_bytes(safetensors(TENSORS))
    assert facts_from_folder(folder).weights.total == 8


def test_a_folder_without_tensors_is_computed_from_its_config(folder):
    assert facts_from_folder(folder).weights.certainty is Certainty.CALIBRATED


def test_a_quantization_in_a_file_of_its_own_counts(folder):
    (folder / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "FP8"}}))
    assert facts_of(folder).architecture.quantization.method == "modelopt"


@pytest.mark.parametrize(
    ("said", "tokens"), [({"max_seq_length": 32}, 32), ({"max_seq_length": None}, 64), ({}, 64)]
)
def test_what_a_sentence_model_says_of_its_length_counts(folder, said, tokens):
    (folder / "config.json").write_text(json.dumps({**CONFIG, "max_position_embeddings": 64}))
    (folder / "sentence_bert_config.json").write_text(json.dumps(said))
    assert facts_of(folder).architecture.max_positions == tokens


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is no safetensors file"),
        (struct.pack("<Q", 1 << 62) + b"{}", "is no safetensors file"),
        (struct.pack("<Q", 4) + b"nope", "is not JSON"),
        (safetensors({"w": ("Q4_K", [1])}), "has dtype 'Q4_K'"),
    ],
)
def test_a_broken_tensor_file_is_named(folder, content, told):
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelUnknown, match=told):
        facts_from_folder(folder)


def test_a_folder_without_a_config_says_so(tmp_path):
    with pytest.raises(ModelUnknown, match=r"holds no config\.json"):
        facts_from_folder(tmp_path)


def test_a_folder_is_read_only_where_folders_may_be(folder):
    assert Resolver(folders=True).resolve_name(str(folder)).origin == "folder"
    with pytest.raises(ModelNeedsFactsPod, match="inside the engine's image"):
        Resolver().resolve_name(str(folder))


def test_a_folder_of_a_known_name_that_does_not_say_its_sizes_is_that_model_and_says_so(tmp_path):
    folder = tmp_path / "Qwen3-32B"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "qwen3"}')
    facts = Resolver(folders=True).resolve_name(str(folder))
    assert facts.architecture == known("Qwen/Qwen3-32B").architecture
    assert facts.origin.startswith("catalogue: by the last part of the path, Qwen/Qwen3-32B")
    assert "hidden_size is missing" in facts.origin
    (folder / "config.json").write_text("{]")
    with pytest.raises(ModelUnknown, match="is not JSON"):
        Resolver(folders=True).resolve_name(str(folder))
    unknown = folder.rename(tmp_path / "nobody-knows-this")
    (unknown / "config.json").write_text('{"model_type": "qwen3"}')
    with pytest.raises(ModelUnknown, match="hidden_size is missing"):
        Resolver(folders=True).resolve_name(str(unknown))


@pytest.mark.parametrize(
    ("source", "origin"),
    [
        ("/models/Qwen3-32B", "catalogue: by the last part of the path, Qwen/Qwen3-32B, which has this name"),
        (
            "s3://bucket/llms/Qwen3-32B/",
            "catalogue: by the last part of the path, Qwen/Qwen3-32B, which has this name",
        ),
        (
            "oci://registry.example/qwen3-32b:v1",
            "catalogue: by the last part of the path, Qwen/Qwen3-32B, which has this name",
        ),
        ("pvc://claim/models--Qwen--Qwen3-32B/snapshots/x", "catalogue: by the last part of the path"),
    ],
)
def test_a_path_that_ends_in_a_known_name_is_that_model_and_says_so(source, origin):
    facts = Resolver().resolve(ModelSpec(source=source))
    assert (facts.origin, facts.source) == (origin, source)


@pytest.mark.parametrize(
    "source", ["s3://bucket/private", "oci://registry.example/x:1", "pvc://claim/x", "modelscope://a/b"]
)
def test_what_only_the_user_can_read_needs_a_facts_pod(source):
    inline = r"write the model's config.json into spec.model.architecture.config"
    with pytest.raises(ModelNeedsFactsPod, match=f"What helps: {inline}$"):
        Resolver().resolve(ModelSpec(source=source))
    with pytest.raises(ModelNeedsFactsPod, match=f"What helps: apply it to a cluster, .*; or {inline}; or "):
        Resolver(folders=True).resolve(ModelSpec(source=source))


def test_the_length_that_a_sentence_model_says_is_read_from_the_hub_too(hub, monkeypatch):
    said = json.dumps({"max_seq_length": 32}).encode()
    monkeypatch.setattr(Hub, "files", {**Hub.files, "sentence_bert_config.json": said})
    assert Resolver(hub=hub).resolve(ModelSpec(source="hf://org/tiny")).architecture.max_positions == 32


def test_the_hub_gives_config_revision_and_exact_bytes(hub):
    facts = Resolver(hub=hub).resolve(ModelSpec(source="hf://org/tiny"))
    assert (facts.origin, facts.revision, facts.source) == ("hub", SHA, "hf://org/tiny")
    assert facts.weights.certainty is Certainty.EXACT
    assert facts.weights.ffn == 128 * 64 * 2
    assert all("Bearer hf_secret" in line for line in Hub.asked if "/api/" in line)
    assert not any(line.startswith("GET") and "safetensors" in line and "None" in line for line in Hub.asked)


@pytest.mark.parametrize(
    ("name", "revision", "told"),
    [
        ("org/missing", None, "has no such repository.*check the spelling"),
        ("org/gated", None, "accepted its licence.*tokenSecret"),
        ("org/tiny", "nowhere", "has no revision 'nowhere'"),
        ("org/broken", None, "answered 500"),
    ],
)
def test_each_answer_of_the_hub_has_its_own_help(hub, name, revision, told):
    with pytest.raises(ModelUnknown, match=told):
        Resolver(hub=hub).resolve(ModelSpec(source=name, revision=revision))


def test_a_hub_that_does_not_answer_is_said_and_a_variant_still_helps():
    silent = HubAccess(endpoint="http://127.0.0.1:9", timeout_seconds=1)
    with pytest.raises(ModelUnknown, match=r"did not answer.*check network, proxy and mirror"):
        Resolver(hub=silent).resolve(ModelSpec(source="org/unknown"))
    facts = Resolver(hub=silent).resolve(ModelSpec(source="somebody/Qwen3-32B-AWQ"))
    assert facts.origin.startswith("catalogue: Qwen/Qwen3-32B with quantization awq")
    assert "did not answer" in facts.origin


def test_a_mirror_is_named_without_its_password():
    silent = HubAccess(endpoint="http://ci:Hunter2x@127.0.0.1:9", timeout_seconds=1)
    with pytest.raises(ModelUnknown, match=r"http://\*\*\*@127\.0\.0\.1:9 did not answer") as caught:
        Resolver(hub=silent).resolve(ModelSpec(source="org/unknown"))
    assert "Hunter2x" not in str(caught.value)


def test_the_proxy_is_used(hub):
    proxied = HubAccess(endpoint="http://hub.invalid", proxy=hub.endpoint, timeout_seconds=60)
    assert Resolver(hub=proxied).resolve(ModelSpec(source="org/tiny")).origin == "hub"


def test_a_pinned_revision_of_a_known_model_is_asked_for(hub):
    facts = Resolver(hub=hub).resolve(ModelSpec(source="Qwen/Qwen3-32B", revision="v1"))
    assert facts.origin.startswith("catalogue (")
    assert any("/api/models/Qwen/Qwen3-32B/revision/v1" in line for line in Hub.asked)
