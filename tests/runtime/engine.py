"""A small engine for the supervisor's tests: says what a real one says, serves /metrics, and does as its words tell it."""

import argparse
import functools
import http.server
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

say = functools.partial(print, flush=True)
METRICS = """\
vllm:num_requests_running{{engine="0"}} {running}
vllm:num_requests_waiting{{engine="0"}} 0.0
vllm:generation_tokens_total{{engine="0"}} {tokens}
vllm:cache_config_info{{block_size="16",num_gpu_blocks="1000",kv_cache_size_tokens="16000",engine="0"}} 1.0
"""


class Engine:
    def __init__(self, told):
        self.told = told
        self.tokens = 0

    @property
    def running(self):
        """The file holds how many requests run: a test is the traffic."""
        try:
            return int(Path(self.told.requests).read_text() or 0)
        except OSError:
            return 0

    def metrics(self):
        if not self.told.hangs:
            self.tokens += 1
        return METRICS.format(running=self.running, tokens=self.tokens)


def handler_of(engine):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = engine.metrics().encode()
            self.send_response(404 if engine.told.no_metrics else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    return Handler


def main():
    parser = argparse.ArgumentParser(prog="vllm serve")
    parser.add_argument("command")
    parser.add_argument("model")
    parser.add_argument("--port", type=int)
    parser.add_argument("--say", action="append", default=[])
    parser.add_argument("--exit", type=int)
    parser.add_argument("--die", type=int)
    parser.add_argument("--requests", default="/nowhere")
    parser.add_argument("--hangs", action="store_true")
    parser.add_argument("--deaf", action="store_true")
    parser.add_argument("--no-metrics", action="store_true")
    parser.add_argument("--deaf-start", action="store_true")
    parser.add_argument("--worker", action="store_true")
    for flag in ("--nnodes", "--node-rank", "--master-addr", "--download-dir"):
        parser.add_argument(flag)
    parser.add_argument("--headless", action="store_true")
    told = parser.parse_args()
    say(f"pid {os.getpid()}")
    for line in told.say:
        say(line)
    if told.worker:
        worker = subprocess.Popen(["sleep", "600"], start_new_session=True)
        say(f"worker {worker.pid}")
    if told.die is not None:
        os.kill(os.getpid(), told.die)
    if told.exit is not None:
        sys.exit(told.exit)
    while told.deaf_start:
        time.sleep(1)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", told.port), handler_of(Engine(told)))
    ended = []  # no Event: its lock may be held by the very wait that a signal cuts in on

    def end(number, frame):
        say(f"told to end by {number}")
        if not told.deaf:
            ended.append(number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGUSR1, lambda number, frame: say("told 1"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say("INFO:     Application startup complete.")
    while not ended:
        time.sleep(0.1)
    server.shutdown()
    time.sleep(0.05)


if __name__ == "__main__":
    main()
