"""A shop with an OpenAPI document: a real server, in a thread of the tests'."""

import copy
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

ORDER = {
    "type": "object",
    "required": ["item"],
    "properties": {
        "item": {"type": "string", "nullable": True},
        "count": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
        "card": {"type": "string", "format": "password"},
        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Order"}},
    },
}
JSON_BODY = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}}
ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "The shop", "version": "1"},
    "servers": [{"url": "/api"}],
    "paths": {
        "/orders/{id}": {
            "parameters": [ID],
            "get": {"operationId": "get_order", "summary": "Read an order"},
        },
        "/orders": {
            "post": {
                "operationId": "create_order",
                "description": "Creates an order.",
                "requestBody": {"required": True, **JSON_BODY},
            },
            "get": {
                "operationId": "list_orders",
                "parameters": [
                    {"name": "tag", "in": "query", "schema": {"type": "array"}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                    {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
                ],
            },
        },
    },
    "components": {"schemas": {"Order": ORDER}},
}


@dataclass
class Shop:
    """`document` is what it publishes, `status` what it answers with, `asked` what it was asked."""

    url: str
    document: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(DOCUMENT))
    status: int = 200
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"{self.url}/openapi.json"

    async def publish(self, request: Request) -> Response:
        return JSONResponse(self.document)

    async def moved(self, request: Request) -> Response:
        return RedirectResponse(self.address)

    async def serve(self, request: Request) -> Response:
        body = await request.body()
        asked = {
            "method": request.method,
            "path": request.scope["raw_path"].decode(),
            "query": request.url.query,
            "headers": dict(request.headers),
            "body": body.decode(),
        }
        self.asked.append(asked)
        return JSONResponse({"said": body.decode() or "nothing"}, self.status)


@contextmanager
def shop() -> Iterator[Shop]:
    """The shop on a free port, until the end of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Shop(f"http://127.0.0.1:{listener.getsockname()[1]}")
        routes = [
            Route("/openapi.json", found.publish),
            Route("/moved.json", found.moved),
            Route("/api/{rest:path}", found.serve, methods=["GET", "POST", "DELETE"]),
        ]
        config = uvicorn.Config(Starlette(routes=routes), lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield found
        finally:
            server.should_exit = True
            thread.join(10)
