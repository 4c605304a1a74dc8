"""The tools of `inbox mcp` and `orch mcp`, called in this process or by the SDK's own client."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import click

from inbox_orch.inbox.cli import mcp as inbox_mcp
from inbox_orch.inbox.cli import program as inbox_program
from inbox_orch.orch.cli import mcp as orch_mcp
from inbox_orch.orch.cli import program as orch_program
from inbox_orch.shared.tools.tool_calls import Call, Place, carry_out
from inbox_orch.shared.tools.tools import Described, described
from support.commands import command_path
from support.timing import PATIENCE_SECONDS

PROGRAMS: dict[str, tuple[click.Group, Any]] = {
    "inbox": (inbox_program, inbox_mcp),
    "orch": (orch_program, orch_mcp),
}


def tools_of(name: str) -> dict[str, Described]:
    """The tools of a program by their names."""
    program, module = PROGRAMS[name]
    found = [described(program, tool, module._ABOUT, module._gives) for tool in module.TOOLS]
    return {about.name: about for about in found}


class Caller:
    """Calls tools in this process, as one agent on one database."""

    def __init__(self, database: Path, agent: str, program: str = "inbox") -> None:
        self._program = program
        self._place = Place(PROGRAMS[program][0], (f"--db={database}", f"--agent={agent}"))
        self._tools = tools_of(program)

    def __call__(self, tool: str, *, delivered: bool = True, **given: Any) -> dict[str, Any]:
        """The answer; `delivered` is whether it reaches whoever has called."""
        call = Call(lambda: call.delivery.settle(delivered=delivered))
        carry_out(self._place, self._tools[f"{self._program}_{tool}"], given, call)
        call.interruption.close()
        assert call.answer is not None
        return call.answer


def with_clients(
    folder: Path,
    agents: list[str],
    talk: Callable[..., Awaitable[None]],
    program: str = "inbox",
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run `talk` with a client for each agent, each of which has a server of its own."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def run() -> None:
        async with AsyncExitStack() as stack:
            clients = []
            for agent in agents:
                server = StdioServerParameters(
                    command=command_path(program),
                    args=["mcp", "--agent", agent],
                    cwd=folder,
                    env=dict(environment or {}),
                )
                clients.append(await stack.enter_async_context(Client(stdio_client(server))))
            await talk(*clients)

    asyncio.run(asyncio.wait_for(run(), 2 * PATIENCE_SECONDS))
