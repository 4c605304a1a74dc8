"""The Model Context Protocol, spoken on the standard streams: tools of a program for one client.

The one module that knows the protocol; it uses the official SDK, which is an optional part of the
installation. Calls run in threads, so that one that waits keeps none from being answered. A call
that the client cancels stops waiting; the end of the input, which is the end of the client, ends
the process. Decides nothing about threads or runs.
"""

import json
import math
import os
import signal
import threading
from collections.abc import AsyncIterator, Mapping
from functools import partial
from types import FrameType
from typing import Any, NamedTuple

import anyio
import anyio.abc
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from pydantic import ValidationError

from ..errors import EXIT_CODES
from ..shell.json_words import once_each, words_of
from .cutting import Rests
from .tool_calls import Answer, Call, Delivery, Place, carry_out
from .tools import Described, lean, outline
from .wording import Wording

_MOST_AT_ONCE = 64
# Of JSON-RPC 2.0, section 5.1. The second is for a tool that there is not.
_NOT_JSON, _NO_REQUEST, _TAKEN_ABACK = -32700, -32600, -32602
_MOST_DIGITS = 300


class Offer(NamedTuple):
    """What is served: the tools of one program, and what a client is told about them; `rest` is the
    one that reads on in results that were cut."""

    place: Place
    version: str
    instructions: str
    tools: tuple[Described, ...]
    wording: Wording
    rest: Described


def serve(offer: Offer) -> None:
    """Answer a client on standard input and output until it goes."""
    # The SDK reads in a thread that nothing can interrupt. What a thread is in the middle of is
    # done wholly or not at all, as for a command that is killed.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end_at_once)
    anyio.run(_Service(offer).run)


def _end_at_once(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)


class _Service:
    """One client."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._by_name = {about.name: about for about in offer.tools}
        self._rests = Rests(offer.rest.name)
        self._wire = _Wire()
        self._limiter = anyio.CapacityLimiter(_MOST_AT_ONCE)
        # With each, what is set when its command has come to its end.
        self._calls: dict[Call, anyio.Event] = {}

    async def run(self) -> None:
        """Until the input ends."""
        server: Server[Any] = Server(
            self._offer.place.name,
            version=self._offer.version,
            instructions=self._offer.instructions,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        async with anyio.create_task_group() as self._threads:
            try:
                lines: Any = self._readable_lines()
                async with stdio_server(lines, self._wire.stream) as (read, write):
                    await server.run(read, write, server.create_initialization_options())
            finally:
                for call in self._calls:
                    call.give_up()

    async def _readable_lines(self) -> AsyncIterator[str]:
        """What the client says, for the SDK, which leaves what it cannot read without an answer:
        that is refused here."""
        async for line in anyio.wrap_file(self._wire.input):
            refusal = _refusal_of(line) if line.strip() else None
            if refusal is not None:
                await anyio.to_thread.run_sync(self._wire.send, json.dumps(refusal) + "\n")
            elif line.strip():
                yield line

    async def _list(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        told = (*self._offer.tools, self._offer.rest)
        return types.ListToolsResult(tools=[_tool_of(about) for about in told])

    async def _call(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name == self._offer.rest.name:
            read_on = self._rests.answer(params.arguments or {})
            return _result_of(_content_of(read_on, self._offer.wording), ok=read_on["ok"])
        about = self._by_name.get(params.name)
        if about is None:
            raise MCPError(_TAKEN_ABACK, f"there is no tool {params.name!r}")
        await self._end_of_answered()
        answered = anyio.Event()
        call = Call(partial(anyio.from_thread.run_sync, answered.set))
        if context.request_id is not None:
            self._wire.expect(context.request_id, call.delivery)
        self._threads.start_soon(self._carry_out, about, params.arguments or {}, call, answered)
        try:
            await answered.wait()
        except anyio.get_cancelled_exc_class():
            self._wire.forget(context.request_id)
            call.give_up()
            raise
        assert call.answer is not None, "a command has answered nothing"
        content = _content_of(call.answer, self._offer.wording)
        return _result_of(self._rests.shortened(content), ok=call.answer["ok"])

    async def _end_of_answered(self) -> None:
        """A command has something to do once its answer has been written. A client that has read
        the answer finds that done."""
        for call, ended in list(self._calls.items()):
            if call.answer is not None:
                await ended.wait()

    async def _carry_out(
        self, about: Described, given: Mapping[str, Any], call: Call, answered: anyio.Event
    ) -> None:
        """In a task of its own, because a command goes on once its answer has been written."""
        self._calls[call] = ended = anyio.Event()
        try:
            work = partial(carry_out, self._offer.place, about, given, call)
            await anyio.to_thread.run_sync(work, limiter=self._limiter)
        finally:
            del self._calls[call]
            call.interruption.close()
            answered.set()
            ended.set()


def _refusal_of(line: str) -> dict[str, Any] | None:
    """The error for a line that the SDK cannot read, None for one that it can."""
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        return _refusal(line, error.errors(include_url=False)[0]["msg"])
    repeated = _repeated_key(line)
    if repeated is not None:
        return _refusal(line, repeated)
    # With an id that is none a request would be taken for a notification.
    if isinstance(message, types.JSONRPCNotification) and "id" in _loaded(line):
        return _refusal(line, "the id is neither text nor a whole number")
    return None


def _refusal(line: str, reason: str) -> dict[str, Any]:
    """The error, with the request's id if that can be had: `json` reads more than the SDK."""
    code, request = _NO_REQUEST, None
    try:
        message = _loaded(line)
    except (ValueError, RecursionError):
        code = _NOT_JSON
    else:
        # The id of an answer is one that we have given, and stands for no request of the client.
        if isinstance(message, dict) and not message.keys() & {"result", "error"}:
            request = message.get("id")
    if isinstance(request, bool) or not isinstance(request, (str, int, float)):
        request = None
    if isinstance(request, float) and not math.isfinite(request):
        request = None  # which JSON cannot say
    error = {"code": code, "message": f"this message cannot be read: {reason}"[:200]}
    return {"jsonrpc": "2.0", "id": request, "error": error}


def _loaded(line: str) -> Any:
    """The value of a line, without its longest numbers. Raises ValueError and RecursionError."""
    return json.loads(line, parse_int=lambda n: int(n) if len(n) <= _MOST_DIGITS else None)


def _repeated_key(line: str) -> str | None:
    """Which key stands twice in a line, of which the SDK would drop the first value in silence;
    None when each stands once."""
    try:
        json.loads(line, object_pairs_hook=once_each, parse_int=str)
    except (ValueError, RecursionError) as error:
        return words_of(error)
    return None


def _tool_of(about: Described) -> types.Tool:
    tool = about.tool
    return types.Tool(
        name=about.name,
        description=about.description,
        input_schema=about.takes,
        output_schema=outline(about.gives),
        annotations=types.ToolAnnotations(
            # What is as a client takes it to be without a word is left out.
            read_only_hint=tool.reads or None,
            destructive_hint=None if tool.reads else tool.destroys,
            idempotent_hint=(tool.repeats and not tool.reads) or None,
            open_world_hint=False,
        ),
    )


def _content_of(answer: Answer, wording: Wording) -> dict[str, Any]:
    """The data, or the error with the data beside it, and its hint in the words of tools."""
    content: dict[str, Any] = lean(answer.get("data", {}))
    if not answer["ok"]:
        error = dict(answer["error"])
        if error.get("hint"):
            error["hint"] = wording.of(error["hint"])
        content = {
            "error": {**lean(error), "exit_code": EXIT_CODES[error["code"]]},
            **({"data": content} if "data" in answer else {}),
        }
    return content


def _result_of(content: dict[str, Any], *, ok: bool) -> types.CallToolResult:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=content,
        is_error=not ok,
    )


class _Wire:
    """Standard input; and standard output, as a text stream that tells which answers have been
    written. No command and no process that it starts has either."""

    def __init__(self) -> None:
        self._expected: dict[Any, Delivery] = {}
        # Nothing else may take messages away, and whatever else is printed must not get between.
        # What is no UTF-8 is refused, not replaced: bytes are stored as they came, or not at all.
        self.input = open(  # noqa: SIM115 - as long as the process
            os.dup(0), encoding="utf-8", errors="surrogateescape", closefd=False
        )
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._descriptor = os.dup(1)
        os.dup2(2, 1)
        self._sending = threading.Lock()

    @property
    def stream(self) -> anyio.AsyncFile[str]:
        """For the SDK."""
        file: Any = self
        return anyio.wrap_file(file)

    def expect(self, request: int | str, delivery: Delivery) -> None:
        """Settle a delivery when the answer to this request has been written."""
        self._expected[request] = delivery

    def forget(self, request: int | str | None) -> None:
        """There will be no answer."""
        self._expected.pop(request, None)

    def write(self, text: str) -> int:
        """One message, all of it."""
        delivered = self.send(text)
        if self._expected:
            delivery = self._expected.pop(json.loads(text).get("id"), None)
            if delivery is not None:
                delivery.settle(delivered=delivered)
        return len(text)

    def send(self, text: str) -> bool:
        """Write a message, whole and between others; False when it is not read any more."""
        view = memoryview(text.encode())
        try:
            with self._sending:
                while view:
                    view = view[os.write(self._descriptor, view) :]
        except OSError:
            return False  # the end of the input will follow
        return True

    def flush(self) -> None:
        """Nothing stays here."""
