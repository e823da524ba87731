"""The HTTP side of the demo world: its services, the model provider, and its control."""

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from tools.world import faults as fault_control
from tools.world.faults import Faults, Mode, Service
from tools.world.hooks import Hooks
from tools.world.payments import Payments
from tools.world.provider import build_provider
from tools.world.pulls import REPOSITORY, Pulls
from tools.world.services import Answer, Chat, Tickets

_AFTER: tuple[Mode, ...] = ("delay", "drop_after", "error_after", "late")


class OpenConnections(H11Protocol):
    """uvicorn's protocol, with a way to hang up on a client in the middle of a request."""

    by_peer: ClassVar[dict[tuple[str, int], asyncio.Transport]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.by_peer[transport.get_extra_info("peername")[:2]] = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self.client is not None:
            self.by_peer.pop(self.client, None)
        super().connection_lost(exc)


class Door:
    """Reads a request, has the effect, and answers as the waiting faults want it."""

    def __init__(self, world_dir: Path, faults: Faults) -> None:
        self.faults = faults
        self.chat = Chat(world_dir)
        self.tickets = Tickets(world_dir)
        self.pulls = Pulls(world_dir)
        self.hooks = Hooks(world_dir)
        self.payments = Payments(world_dir)
        self._to_come: set[asyncio.Task[None]] = set()

    async def _act(
        self,
        request: Request,
        service: Service,
        effect: Callable[[dict[str, Any]], Answer],
        key_of: Callable[[dict[str, Any]], str] | None = None,
    ) -> Response:
        """`key_of` finds the idempotency key where it is not in a header."""
        body = await _body(request)
        if body is None:
            return JSONResponse({"error": "the body must be a JSON object"}, 400)
        # A push is refused by the repository's own hook, before there is anything to draft.
        modes: tuple[Mode, ...] = _AFTER if service == "git" else ()
        key = key_of(body) if key_of else request.headers.get("idempotency-key", "")
        fault = self.faults.take(service, *modes, key=key)
        if fault and fault.mode == "refuse":
            return JSONResponse({"error": "refused"}, 403)
        if fault and fault.mode == "busy":
            again = {"Retry-After": str(math.ceil(fault.seconds))}
            return JSONResponse({"error": "busy"}, 503, headers=again)
        if fault and fault.mode == "late":
            await _hang_up(request)
            self._later(fault.seconds, effect, body)
            return Response(status_code=500)  # nobody hears it
        status, answer = await run_in_threadpool(effect, body)
        if fault and fault.mode == "drop_after":
            await _hang_up(request)
        if fault and fault.mode == "error_after":
            return JSONResponse({"error": "something went wrong here"}, 500)
        if fault and fault.mode == "delay":
            await asyncio.sleep(fault.seconds)
        return JSONResponse(answer, status)

    def _later(
        self, seconds: float, effect: Callable[[dict[str, Any]], Answer], body: dict[str, Any]
    ) -> None:
        async def act() -> None:
            await asyncio.sleep(seconds)
            await run_in_threadpool(effect, body)

        task = asyncio.create_task(act())
        self._to_come.add(task)  # the loop itself forgets what nobody keeps
        task.add_done_callback(self._to_come.discard)

    async def chat_post(self, request: Request) -> Response:
        return await self._act(request, "chat", self.chat.post, self.chat.key_of)

    async def chat_update(self, request: Request) -> Response:
        return await self._act(
            request, "chat", lambda body: self.chat.change("edited", body), self.chat.key_of
        )

    async def chat_delete(self, request: Request) -> Response:
        return await self._act(
            request, "chat", lambda body: self.chat.change("deleted", body), self.chat.key_of
        )

    async def chat_mark(self, request: Request) -> Response:
        return await self._act(request, "chat", self.chat.mark, self.chat.key_of)

    async def chat_history(self, request: Request) -> Response:
        query = request.query_params
        status, answer = self.chat.history(query.get("client_msg_id"), query.get("channel"))
        return JSONResponse(answer, status)

    async def ticket_open(self, request: Request) -> Response:
        key = request.headers.get("idempotency-key", "")
        return await self._act(request, "tickets", lambda body: self.tickets.open(body, key))

    async def ticket_change(self, request: Request) -> Response:
        number, match = request.path_params["number"], request.headers.get("if-match", "")
        return await self._act(
            request, "tickets", lambda body: self.tickets.change(number, body, match)
        )

    async def ticket_find(self, request: Request) -> Response:
        status, answer = self.tickets.find(request.query_params.get("idempotency_key"))
        return JSONResponse(answer, status)

    async def pull_open(self, request: Request) -> Response:
        return await self._act(request, "git", self.pulls.open, self.pulls.key_of)

    async def pull_change(self, request: Request) -> Response:
        number = request.path_params["number"]
        return await self._act(
            request,
            "git",
            lambda body: self.pulls.change(number, body),
            lambda body: self.pulls.key_of_number(number),
        )

    async def pull_merge(self, request: Request) -> Response:
        status, answer = self.pulls.merge(request.path_params["number"])
        return JSONResponse(answer, status)

    async def pull_get(self, request: Request) -> Response:
        status, answer = self.pulls.get(request.path_params["number"])
        return JSONResponse(answer, status)

    async def pull_list(self, request: Request) -> Response:
        return JSONResponse(self.pulls.list(request.query_params))

    async def hook_deliver(self, request: Request) -> Response:
        key = request.headers.get("idempotency-key", "")
        agent, _, tool = request.headers.get("user-agent", "").partition("/")
        tool = tool if agent == "agentruns" else ""
        return _with_version(
            await self._act(request, "hooks", lambda body: self.hooks.deliver(body, key, tool))
        )

    async def hook_replace(self, request: Request) -> Response:
        key = request.path_params["key"]
        return await self._act(request, "hooks", lambda body: self.hooks.replace(key, body))

    async def hook_remove(self, request: Request) -> Response:
        key, match = request.path_params["key"], request.headers.get("if-match", "")
        return await self._act(request, "hooks", lambda body: self.hooks.remove(key, match))

    async def hook_get(self, request: Request) -> Response:
        status, answer = self.hooks.get(request.path_params["key"])
        return _with_version(JSONResponse(answer, status))

    async def hook_list(self, request: Request) -> Response:
        status, answer = self.hooks.list()
        return JSONResponse(answer, status)

    async def payment_authorize(self, request: Request) -> Response:
        key = request.headers.get("idempotency-key", "")
        return await self._act(
            request, "authorizations", lambda body: self.payments.authorize(body, key)
        )

    async def payment_capture(self, request: Request) -> Response:
        number, key = request.path_params["number"], request.headers.get("idempotency-key", "")
        return await self._act(
            request, "payments", lambda _body: self.payments.capture(number, key)
        )

    async def payment_void(self, request: Request) -> Response:
        number, key = request.path_params["number"], request.headers.get("idempotency-key", "")
        return await self._act(
            request, "authorizations", lambda _body: self.payments.void(number, key)
        )

    async def payment_refund(self, request: Request) -> Response:
        number, key = request.path_params["number"], request.headers.get("idempotency-key", "")
        return await self._act(
            request, "payments", lambda body: self.payments.refund(number, body, key)
        )

    async def payment_find(self, request: Request) -> Response:
        query = request.query_params
        status, answer = self.payments.find(query.get("idempotency_key"), query.get("status"))
        return JSONResponse(answer, status)

    async def fault_add(self, request: Request) -> Response:
        # A page in somebody's browser can post to loopback too, but not with this content type.
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return JSONResponse({"error": "send application/json"}, 415)
        try:
            fault = fault_control.parse(await _body(request))
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 422)
        self.faults.add(fault)
        return Response(status_code=204)

    async def fault_clear(self, request: Request) -> Response:
        self.faults.clear()
        return Response(status_code=204)


async def _body(request: Request) -> dict[str, Any] | None:
    content = await request.body()
    if request.method == "DELETE" and not content:
        return {}
    try:
        body = json.loads(content)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _with_version(response: Response) -> Response:
    version = json.loads(bytes(response.body)).get("version")
    if version:
        response.headers["ETag"] = f'"{version}"'
    return response


async def _hang_up(request: Request) -> None:
    peer = request.client
    transport = peer and OpenConnections.by_peer.get((peer.host, peer.port))
    if transport:
        transport.close()
        await asyncio.sleep(0)  # lets uvicorn see it, and drop what is answered after


def build_app(world_dir: Path, faults: Faults) -> Starlette:
    """The whole HTTP side, to be served by uvicorn with `OpenConnections` as its protocol."""
    door = Door(world_dir, faults)
    services = [each(door) for each in (_chat, _tickets, _pulls, _hooks, _payments, _control)]
    return Starlette(routes=[*services, Mount("/v1", app=build_provider(world_dir))])


def _chat(door: Door) -> Mount:
    routes = [
        Route("/chat.postMessage", door.chat_post, methods=["POST"]),
        Route("/chat.update", door.chat_update, methods=["POST"]),
        Route("/chat.delete", door.chat_delete, methods=["POST"]),
        Route("/conversations.mark", door.chat_mark, methods=["POST"]),
        Route("/conversations.history", door.chat_history),
    ]
    return Mount("/chat", routes=routes)


def _tickets(door: Door) -> Mount:
    routes = [
        Route("/tickets", door.ticket_open, methods=["POST"]),
        Route("/tickets", door.ticket_find),
        Route("/tickets/{number}", door.ticket_change, methods=["PATCH"]),
    ]
    return Mount("/tickets", routes=routes)


def _pulls(door: Door) -> Mount:
    routes = [
        Route("/pulls", door.pull_open, methods=["POST"]),
        Route("/pulls", door.pull_list),
        Route("/pulls/{number:int}", door.pull_change, methods=["PATCH"]),
        Route("/pulls/{number:int}", door.pull_get),
        Route("/pulls/{number:int}/merge", door.pull_merge, methods=["PUT"]),
    ]
    return Mount(f"/git/repos/{REPOSITORY}", routes=routes)


def _hooks(door: Door) -> Mount:
    routes = [
        Route("/deliveries", door.hook_deliver, methods=["POST"]),
        Route("/deliveries", door.hook_list),
        Route("/deliveries/{key}", door.hook_replace, methods=["PUT"]),
        Route("/deliveries/{key}", door.hook_remove, methods=["DELETE"]),
        Route("/deliveries/{key}", door.hook_get),
    ]
    return Mount("/hooks", routes=routes)


def _payments(door: Door) -> Mount:
    routes = [
        Route("/authorizations", door.payment_authorize, methods=["POST"]),
        Route("/authorizations", door.payment_find),
        Route("/authorizations/{number}/capture", door.payment_capture, methods=["POST"]),
        Route("/authorizations/{number}/void", door.payment_void, methods=["POST"]),
        Route("/captures/{number}/refund", door.payment_refund, methods=["POST"]),
    ]
    return Mount("/payments", routes=routes)


def _control(door: Door) -> Mount:
    routes = [
        Route("/faults", door.fault_add, methods=["POST"]),
        Route("/faults", door.fault_clear, methods=["DELETE"]),
    ]
    return Mount("/_world", routes=routes)
