"""The part of an engine's API that adapters need: the models it has, loading and unloading."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LoraEngine(ThreadingHTTPServer):
    """`refuses` has the status and the message for the name of an adapter that it does not take."""

    daemon_threads = True

    def __init__(self, *, key: str = "", replaces: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.key, self.replaces = key, replaces
        self.loaded: dict[str, str] = {}
        self.refuses: dict[str, tuple[int, str]] = {}
        self.asked: list[str] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def load(self, body: dict[str, Any]) -> tuple[int, str]:
        name = body["lora_name"]
        self.asked.append(f"load {name}")
        if name in self.refuses:
            return self.refuses[name]
        if name in self.loaded and not (self.replaces and body.get("load_inplace")):
            return 400, f"The lora adapter '{name}' has already been loaded."
        self.loaded[name] = body["lora_path"]
        return 200, ""

    def unload(self, body: dict[str, Any]) -> tuple[int, str]:
        name = body["lora_name"]
        self.asked.append(f"unload {name}")
        if self.loaded.pop(name, None) is None:
            return 404, f"The lora adapter '{name}' cannot be found."
        return 200, ""

    def cards(self) -> dict[str, Any]:
        found = [{"id": name, "root": path, "parent": "tiny"} for name, path in self.loaded.items()]
        return {"data": [{"id": "tiny", "root": "/models", "parent": None}, *found]}


class _Answers(BaseHTTPRequestHandler):
    server: LoraEngine

    def do_GET(self) -> None:
        if self._may():
            self._say(200, self.server.cards())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._may():
            return
        act = {"/v1/load_lora_adapter": self.server.load, "/v1/unload_lora_adapter": self.server.unload}
        status, message = act[self.path](body)
        self._say(status, {"error": {"message": message}} if message else {})

    def _may(self) -> bool:
        if self.server.key and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            self._say(401, {"error": "Unauthorized"})
            return False
        return True

    def _say(self, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def lora_engine(*, key: str = "", replaces: bool = True) -> Iterator[LoraEngine]:
    engine = LoraEngine(key=key, replaces=replaces)
    thread = threading.Thread(target=engine.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield engine
    finally:
        engine.shutdown()
        engine.server_close()
        thread.join()


def listed(*items, schema=1):
    return json.dumps({"schema": schema, "adapters": list(items)}).encode()


def item(name, path=None, revision=None, source="hf://a/b", number=""):
    found = {"name": name, "id": f"{name}{revision or ''}{number}", "source": source}
    return found | ({"path": str(path)} if path else {}) | ({"revision": revision} if revision else {})


def an_adapter(folder, rank=8, **about):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": rank, **about}))
    (folder / "adapter_model.safetensors").write_bytes(b"tensors")
    return folder
