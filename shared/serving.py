"""The Model Context Protocol, spoken on the standard streams: tools of a program for one client.

The one module that knows the protocol; it uses the official SDK, which is an optional part of the
installation. Calls run in threads, so that one that waits keeps none from being answered. A call
that the client cancels stops waiting; the end of the input, which is the end of the client, ends
the process. Decides nothing about threads or runs.
"""

import json
import os
import signal
from collections.abc import Mapping
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

from .errors import EXIT_CODES
from .tool_calls import Answer, Call, Delivery, Place, carry_out
from .tools import Described, lean

_MOST_AT_ONCE = 64
_TAKEN_ABACK = -32602  # "invalid params" of JSON-RPC 2.0, for a tool that there is not


class Offer(NamedTuple):
    """What is served: the tools of one program, and what a client is told about them."""

    place: Place
    version: str
    instructions: str
    tools: tuple[Described, ...]


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
                async with stdio_server(stdout=self._wire.stream) as (read, write):
                    await server.run(read, write, server.create_initialization_options())
            finally:
                for call in self._calls:
                    call.give_up()

    async def _list(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool_of(about) for about in self._offer.tools])

    async def _call(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
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
        return _result_of(call.answer)

    async def _end_of_answered(self) -> None:
        """A command has something to do once its answer has been written. Whoever has read the
        answer finds that done."""
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


def _tool_of(about: Described) -> types.Tool:
    tool = about.tool
    return types.Tool(
        name=about.name,
        description=about.description,
        input_schema=about.takes,
        output_schema=about.gives,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.repeats or tool.reads,
            open_world_hint=False,
        ),
    )


def _result_of(answer: Answer | None) -> types.CallToolResult:
    """The data, or the error with the data that stands beside it."""
    assert answer is not None, "a command has answered nothing"
    content: dict[str, Any] = lean(answer.get("data", {}))
    if not answer["ok"]:
        error = answer["error"]
        content = {
            "error": {**lean(error), "exit_code": EXIT_CODES[error["code"]]},
            **({"data": content} if "data" in answer else {}),
        }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=content,
        is_error=not answer["ok"],
    )


class _Wire:
    """Standard output, as a text stream that tells which answers have been written."""

    def __init__(self) -> None:
        self._expected: dict[Any, Delivery] = {}
        # Whatever else is printed must not get between the messages.
        self._descriptor = os.dup(1)
        os.dup2(2, 1)

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
        delivered = True
        view = memoryview(text.encode())
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            delivered = False  # the end of the input will follow
        if self._expected:
            delivery = self._expected.pop(json.loads(text).get("id"), None)
            if delivery is not None:
                delivery.settle(delivered=delivered)
        return len(text)

    def flush(self) -> None:
        """Nothing stays here."""
