"""A second process in front of a stack's pages, with settings of its own."""

from collections.abc import Iterator
from contextlib import contextmanager

from agentruns.services.ports import LOOPBACK, free_ports
from agentruns.services.processes import Process
from agentruns.services.programs import programs, readiness
from agentruns.services.stack import Stack
from tests.drill.over_http import until


@contextmanager
def another_front(stack: Stack, **settings: str) -> Iterator[str]:
    """Its address, for the time of the block."""
    [port] = free_ports(1)
    env = stack.env | {"PORT": str(port)} | settings
    specs = programs(stack.data_dir / f"front-{port}", env, web=True, workers=False, world=False)
    [web] = [Process(spec) for spec in specs if spec.name == "web"]
    web.start()
    try:
        until(readiness(env, ["web"])["web"], bool)
        yield f"http://{LOOPBACK}:{port}"
    finally:
        web.stop()
