"""The HTTP API of one stand-in engine, in the shapes that the real one answers in. What an engine does is `instance`'s.

There is no tokenizer: a prompt of token ids is counted, a text is taken for four tokens every three words. Answers are
words that mean nothing. What real clients measure and tests look at is there; what only real models can say is not.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from plimsoll.simulate.prefixes import PREFIX_BLOCK
from standin.instance import Aborted, Died, Instance, Refused, State

WORD: Final = " bada"
TEMPLATE_TOKENS: Final = 8
"""What a chat template adds to a message."""
COMPLETION_TOKENS: Final = 16
"""Of a completion that says no max_tokens, as the API has it."""
_NUMBERS: Final = itertools.count(1)


class Problem(Exception):
    def __init__(self, status: int, kind: str, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.parameter = status, kind, parameter


Which = Callable[[web.Request], Instance]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    chat: bool
    model: str
    input_tokens: int
    output_tokens: int
    prefix: Sequence[int]
    stream: bool
    usage: bool
    """At the end, and `every` in each event."""
    every: bool

    def counted(self, tokens: int) -> dict[str, int]:
        return {
            "prompt_tokens": self.input_tokens,
            "total_tokens": self.input_tokens + tokens,
            "completion_tokens": tokens,
        }


def routes(which: Which, prefix: str = "") -> list[web.RouteDef]:
    """`which` engine a request is for; it may raise an HTTP error."""

    async def health(request: web.Request) -> web.Response:
        # As the engine: healthy while it drains and while it hangs.
        return web.Response(status=503 if which(request).state is State.DEAD else 200)

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(text=which(request).metrics())

    async def version(request: web.Request) -> web.Response:
        return web.json_response({"version": which(request).told.version})

    async def load(_request: web.Request) -> web.Response:
        return web.json_response({"server_load": 0})  # it counts only where the engine is told to

    async def models(request: web.Request) -> web.Response:
        return web.json_response(_models(which(request)))

    async def completions(request: web.Request) -> web.StreamResponse:
        return _closing(await _answer(request, which(request), chat=False), which(request))

    async def chat(request: web.Request) -> web.StreamResponse:
        return _closing(await _answer(request, which(request), chat=True), which(request))

    return [
        web.get(f"{prefix}/health", health),
        web.get(f"{prefix}/ping", health),
        web.get(f"{prefix}/version", version),
        web.get(f"{prefix}/load", load),
        web.get(f"{prefix}/metrics", metrics),
        web.get(f"{prefix}/v1/models", models),
        web.post(f"{prefix}/v1/completions", completions),
        web.post(f"{prefix}/v1/chat/completions", chat),
    ]


def _models(instance: Instance) -> dict[str, Any]:
    about = {"id": instance.told.model, "object": "model", "owned_by": "vllm", "root": instance.told.model}
    return {
        "object": "list",
        "data": [{**about, "parent": None, "max_model_len": instance.told.limits.max_model_len}],
    }


def _closing(response: web.StreamResponse, instance: Instance) -> web.StreamResponse:
    if instance.told.closes and not response.prepared:
        response.force_close()
    return response


async def _answer(request: web.Request, instance: Instance, *, chat: bool) -> web.StreamResponse:
    try:
        wanted = _wanted(await request.json(), instance, chat=chat)
        tokens = instance.answer(wanted.input_tokens, wanted.output_tokens, wanted.prefix)
        async with aclosing(tokens):
            if wanted.stream:
                return await _stream(request, wanted, tokens, closes=instance.told.closes)
            return await _whole(wanted, tokens)
    except json.JSONDecodeError as error:
        return _refusal(Problem(400, "BadRequestError", f"the body is no JSON: {error}"))
    except Problem as problem:
        return _refusal(problem)
    except Refused as refused:
        return _refusal(Problem(503, "ServiceUnavailableError", str(refused)))
    except Died as died:
        return _refusal(Problem(500, "InternalServerError", str(died)))


def _wanted(body: Any, instance: Instance, *, chat: bool) -> Wanted:
    if not isinstance(body, dict):
        raise Problem(400, "BadRequestError", "the body must be an object")
    told = instance.told
    model = body.get("model") or told.model
    if model != told.model:
        raise Problem(
            404, "NotFoundError", f"The model `{model}` does not exist. Valid aliases: {told.model}.", "model"
        )
    words = _words(body, chat=chat)
    tokens = len(words) if body.get("prompt") is words else -(-len(words) * 4 // 3)
    if chat:
        tokens += TEMPLATE_TOKENS * len(body["messages"])
    longest = told.limits.max_model_len
    if tokens >= longest:
        raise Problem(
            400,
            "BadRequestError",
            f"This model's maximum context length is {longest} tokens. However, your prompt contains {tokens} input "
            "tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input "
            f"prompt. (parameter=input_tokens, value={tokens})",
            "input_tokens",
        )
    most = longest - tokens
    options = body.get("stream_options") or {}
    return Wanted(
        chat=chat,
        model=model,
        input_tokens=max(1, tokens),
        output_tokens=min(most, _asked(body) or (most if chat else COMPLETION_TOKENS)),
        prefix=_prefix(words),
        stream=bool(body.get("stream")),
        usage=bool(options.get("include_usage")),
        every=bool(options.get("continuous_usage_stats")),
    )


def _asked(body: Mapping[str, Any]) -> int | None:
    asked = body.get("max_completion_tokens", body.get("max_tokens"))
    if asked is None:
        return None
    if not isinstance(asked, int) or asked < 1:
        raise Problem(400, "BadRequestError", f"max_tokens must be at least 1, got {asked}.", "max_tokens")
    return asked


def _words(body: Mapping[str, Any], *, chat: bool) -> Sequence[object]:
    if chat:
        messages = body.get("messages")
        if (
            not isinstance(messages, list)
            or not messages
            or not all(isinstance(one, dict) for one in messages)
        ):
            raise Problem(
                400, "BadRequestError", "messages must be a list of messages, not empty", "messages"
            )
        return [word for one in messages for word in f"{one.get('role')}: {one.get('content')}".split()]
    prompt = body.get("prompt")
    if not prompt:
        raise Problem(
            400,
            "BadRequestError",
            "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)",
            "prompt",
        )
    return prompt.split() if isinstance(prompt, str) else prompt


def _prefix(words: Sequence[object]) -> Sequence[int]:
    """Ids of the blocks that the prompt begins with: each stands for itself and all before it."""
    ids, so_far = [], 0
    for start in range(0, len(words) - PREFIX_BLOCK + 1, PREFIX_BLOCK):
        block = " ".join(map(str, words[start : start + PREFIX_BLOCK]))
        so_far = zlib.crc32(block.encode(), so_far)
        ids.append(so_far)
    return ids


async def _whole(wanted: Wanted, tokens: AsyncIterator[int]) -> web.Response:
    there, finish = 0, "length"
    try:
        async for now in tokens:
            there = now
    except Aborted:
        finish = "abort"
    text = WORD * there
    part: dict[str, Any] = (
        {"message": {"role": "assistant", "content": text}} if wanted.chat else {"text": text}
    )
    kind = "chat.completion" if wanted.chat else "text_completion"
    choice = {"index": 0, **part, "logprobs": None, "finish_reason": finish, "stop_reason": None}
    body = _event(wanted, _name(wanted), kind, [choice]) | {"usage": wanted.counted(there)}
    return web.json_response(body)


async def _stream(
    request: web.Request, wanted: Wanted, tokens: AsyncIterator[int], *, closes: bool
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    if closes:
        response.force_close()
    name, kind = _name(wanted), "chat.completion.chunk" if wanted.chat else "text_completion"

    async def send(choices: list[dict[str, Any]], count: int | None) -> None:
        event = _event(wanted, name, kind, choices)
        if count is not None:
            event["usage"] = wanted.counted(count)
        await response.write(f"data: {json.dumps(event)}\n\n".encode())

    there, begun, finish = 0, False, "length"
    try:
        async for now in tokens:
            if not begun:
                await response.prepare(request)
                begun = True
                if wanted.chat:
                    opening = {
                        "index": 0,
                        "delta": {"role": "assistant", "content": ""},
                        "finish_reason": None,
                    }
                    await send([opening], 0 if wanted.every else None)
            last = now >= wanted.output_tokens
            await send(
                [_choice(wanted, now - there, "length" if last else None)], now if wanted.every else None
            )
            there = now
    except Aborted:
        finish = "abort"
        if not begun:
            await response.prepare(request)
        await send([_choice(wanted, 0, finish)], there if wanted.every else None)
    except Died:
        if begun and request.transport is not None:
            request.transport.abort()
            return response
        raise
    if wanted.usage:
        await send([], there)
    await response.write(b"data: [DONE]\n\n")
    return response


def _choice(wanted: Wanted, tokens: int, finish: str | None) -> dict[str, Any]:
    text = WORD * tokens
    part: dict[str, Any] = {"delta": {"content": text}} if wanted.chat else {"text": text}
    return {"index": 0, **part, "logprobs": None, "finish_reason": finish}


def _name(wanted: Wanted) -> str:
    return f"{'chatcmpl' if wanted.chat else 'cmpl'}-{next(_NUMBERS):016x}"


def _event(wanted: Wanted, name: str, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": name, "object": kind, "created": 0, "model": wanted.model, "choices": choices}


def _refusal(problem: Problem) -> web.Response:
    error = {
        "message": str(problem),
        "type": problem.kind,
        "param": problem.parameter,
        "code": problem.status,
    }
    return web.json_response({"error": error}, status=problem.status)
