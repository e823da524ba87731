"""An MCP server of the tests', made with the `mcp` package: `mcp_server.py FOLDER [PORT]`.

What it offers and how it behaves is read from FOLDER/orders.json each time, what it was asked to do
is written to FOLDER/journal.jsonl. With a port it speaks streamable HTTP, else it speaks on its
standard streams. Orders: `tools` (as MCP describes them), and `mode`: `ok`, `slow` (answers once
the mode is another), `deaf` (the same, and a cancellation does not end it), `wrong` (the tool says
that it went wrong), `refuses` (an error that means: not done), `broken` (an error that says
nothing), `dies` (it does it, and ends without an answer).
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

FOLDER = Path(sys.argv[1])


def orders() -> dict[str, Any]:
    return dict(json.loads((FOLDER / "orders.json").read_text()))


def note(**what: Any) -> None:
    with (FOLDER / "journal.jsonl").open("a") as journal:
        journal.write(json.dumps(what) + "\n")


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool.model_validate(t) for t in orders()["tools"]])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    mode = orders()["mode"]
    note(did="began", tool=params.name, arguments=params.arguments, key=str(ctx.request_id))
    if mode == "refuses":
        raise MCPError(code=types.INVALID_PARAMS, message="no such person")
    if mode == "broken":
        raise MCPError(code=types.INTERNAL_ERROR, message="out of order")
    if mode in ("slow", "deaf"):
        await until_released(mode)
    note(did="done", tool=params.name)
    if mode == "dies":
        os._exit(1)
    text = types.TextContent(type="text", text=f"{params.name}: {json.dumps(params.arguments)}")
    return types.CallToolResult(content=[text], is_error=mode == "wrong")


async def until_released(mode: str) -> None:
    while orders()["mode"] == mode:
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            note(did="heard")
            if mode == "slow":
                raise


server: Server[Any] = Server("The tests’ server", on_list_tools=list_tools, on_call_tool=call_tool)


async def on_streams() -> None:
    async with stdio_server() as (reads, writes):
        await server.run(reads, writes, server.create_initialization_options())


if __name__ == "__main__":
    if len(sys.argv) > 2:
        app = server.streamable_http_app(streamable_http_path="/mcp")
        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
    else:
        asyncio.run(on_streams())
