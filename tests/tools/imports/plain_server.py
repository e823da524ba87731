"""A small MCP server on its standard streams, as older ones are: it answers what was cancelled.

`plain_server.py FOLDER`, with the orders and the journal of mcp_server.py. Modes: `ok`, `confirms`
(waits, and answers a cancellation with the error that says so), `declines` (the same, with an error
that says the opposite), `finishes` (waits, and answers a
cancellation with the result), `silent` (hears nothing at all once it has begun), `stays` (answers,
and does not end when it is told to), `family` (has another program do the work, and waits for it),
`odd` (answers with its arguments where none belong),
`repeats` (an error with its arguments at the end of a long text).
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])


def orders() -> dict[str, Any]:
    return dict(json.loads((FOLDER / "orders.json").read_text()))


def note(**what: Any) -> None:
    with (FOLDER / "journal.jsonl").open("a") as journal:
        journal.write(json.dumps(what) + "\n")


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result(request: dict[str, Any]) -> None:
    note(did="done", tool=request["params"]["name"])
    say(id=request["id"], result={"content": [{"type": "text", "text": "It is done."}]})


def main() -> None:
    waiting: dict[str, dict[str, Any]] = {}
    for line in sys.stdin:
        request = json.loads(line)
        match request["method"]:
            case "initialize":
                about = {"name": "plain", "version": "1"}
                version = request["params"]["protocolVersion"]
                say(
                    id=request["id"],
                    result={
                        "protocolVersion": version,
                        "capabilities": {"tools": {}},
                        "serverInfo": about,
                    },
                )
            case "tools/list":
                say(id=request["id"], result={"tools": orders()["tools"]})
            case "ping":
                say(id=request["id"], result={})
            case "tools/call":
                params = request["params"]
                note(did="began", tool=params["name"], arguments=params.get("arguments"))
                if orders()["mode"] in ("ok", "stays"):
                    result(request)
                elif orders()["mode"] == "odd":
                    say(id=request["id"], result={"content": params["arguments"]})
                elif orders()["mode"] == "repeats":
                    said = "x" * 484 + params["arguments"]["pin"]
                    say(id=request["id"], error={"code": 0, "message": said})
                elif orders()["mode"] == "family":
                    with subprocess.Popen(["sleep", "600"]) as worker:
                        note(did="started", pid=worker.pid)
                elif orders()["mode"] == "silent":
                    time.sleep(30)
                else:
                    waiting[request["id"]] = request
            case "notifications/cancelled":
                note(did="heard")
                cancelled = waiting.pop(request["params"]["requestId"])
                if orders()["mode"] == "finishes":
                    result(cancelled)
                elif orders()["mode"] == "declines":
                    error = {"code": 0, "message": "It cannot be cancelled any more."}
                    say(id=cancelled["id"], error=error)
                else:
                    error = {"code": -32800, "message": "Request stopped"}
                    say(id=cancelled["id"], error=error)
    if orders()["mode"] == "stays":
        time.sleep(30)


main()
