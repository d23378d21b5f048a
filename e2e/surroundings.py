"""What an engine fails by, made for it: a hub that refuses or that has one model, a control group with little memory, weights of zeros."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import models

Shapes = dict[str, tuple[int, ...]]
Said = tuple[int, bytes, Mapping[str, str]]
"""Status, body, headers."""
HUB_NAME: Final = "acme/tiny"


class _Says(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        status, body, headers = self.said(self.path.partition("?")[0])
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            with contextlib.suppress(OSError):
                self.wfile.write(body)

    def said(self, path: str) -> Said:
        raise NotImplementedError(path)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def answering(status: int, headers: Mapping[str, str]) -> Iterator[str]:
    """A hub that says the same to everybody."""

    class Handler(_Says):
        def said(self, path: str) -> Said:
            return status, path.encode(), headers

    with _served(Handler) as url:
        yield url


@contextmanager
def serving_files(folder: Path) -> Iterator[str]:
    """A hub that has one model: its list of files, and each of them."""
    names = sorted(one.name for one in folder.iterdir())
    commit = "1" * 40

    class Handler(_Says):
        def said(self, path: str) -> Said:
            name = path.rpartition("/")[2]
            if "/tree/" in path:
                sizes = {one: (folder / one).stat().st_size for one in names}
                return _json(
                    [
                        {"type": "file", "path": one, "size": size, "oid": commit}
                        for one, size in sizes.items()
                    ]
                )
            if path.startswith("/api/"):
                return _json(
                    {"id": HUB_NAME, "sha": commit, "siblings": [{"rfilename": one} for one in names]}
                )
            if name not in names:
                return 404, b"", {"X-Error-Code": "EntryNotFound"}
            return 200, (folder / name).read_bytes(), {"ETag": f'"{name}"', "X-Repo-Commit": commit}

    with _served(Handler) as url:
        yield url


def _json(body: object) -> Said:
    return 200, json.dumps(body).encode(), {"Content-Type": "application/json"}


@contextmanager
def _served(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def limited(limit: int) -> Iterator[Path]:
    """A control group that may have so much memory; whoever is in it at the end is to be gone."""
    old = Path("/sys/fs/cgroup/memory")
    root, file = (old, "memory.limit_in_bytes") if old.is_dir() else (old.parent, "memory.max")
    group = root / f"plimsoll-failures-{os.getpid()}"
    group.mkdir()
    try:
        (group / file).write_text(str(limit))
        yield group
    finally:
        deadline = time.monotonic() + 10
        while True:
            try:
                group.rmdir()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


def dense_shapes() -> Shapes:
    """Of `models.dense()`."""
    shape = models.COMMON
    hidden, heads = shape["hidden_size"], shape["num_attention_heads"] * shape["head_dim"]
    cache = shape["num_key_value_heads"] * shape["head_dim"]
    found: Shapes = {
        "model.embed_tokens.weight": (shape["vocab_size"], hidden),
        "model.norm.weight": (hidden,),
    }
    for layer in range(8):
        sizes: Shapes = {
            "self_attn.q_proj": (heads, hidden),
            "self_attn.k_proj": (cache, hidden),
            "self_attn.v_proj": (cache, hidden),
            "self_attn.o_proj": (hidden, heads),
            "self_attn.q_norm": (shape["head_dim"],),
            "self_attn.k_norm": (shape["head_dim"],),
            "mlp.gate_proj": (shape["intermediate_size"], hidden),
            "mlp.up_proj": (shape["intermediate_size"], hidden),
            "mlp.down_proj": (hidden, shape["intermediate_size"]),
            "input_layernorm": (hidden,),
            "post_attention_layernorm": (hidden,),
        }
        found |= {f"model.layers.{layer}.{name}.weight": size for name, size in sizes.items()}
    return found


def zeros(shapes: Shapes) -> bytes:
    head, size = _header(shapes)
    return head + bytes(size)


def noise(shapes: Shapes) -> bytes:
    """Small numbers of either sign: with these a model says something, where zeros say nothing."""
    head, size = _header(shapes)
    random, body = Random(1), bytearray(size)
    body[0::2] = random.randbytes(size // 2)
    body[1::2] = random.randbytes(size // 2).translate(bytes([0x3C, 0xBC]) * 128)  # sign and exponent
    return head + bytes(body)


def _header(shapes: Shapes) -> tuple[bytes, int]:
    """Of a file of weights, and how many bytes follow it."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in sorted(shapes.items()):
        begin, size = end, 2
        for width in shape:
            size *= width
        end = begin + size
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [begin, end]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head, end
