"""The demo world as it ships, and whatever tool is registered: each test here is for every one."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel
from pytest_django.fixtures import Settings

from tests.contract.hands import HANDS, Hands, Scene
from tests.tools.builtin.shop import opened
from tests.tools.conftest import NewContext, RunningWorld, _world_process, new_context, world
from tools import registry
from tools.contract import Context, Data, Draft, ItemsInMemory, Receipt, Tier
from tools.registry import RegisteredTool
from tools.secrets import has_secrets

__all__ = ["_world_process", "new_context", "world"]

SECRET = "hunter2-of-the-contract"
# Those that the tests of other packages register come and go.
SHIPPED = [item for item in registry.all() if not item.name.startswith("test.")]


def only(holds: Callable[[RegisteredTool], bool]) -> pytest.MarkDecorator:
    """The test is for the tools of which this holds."""
    return pytest.mark.only.with_args(holds)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`trial` comes once for each tool that the test's `only` mark lets through."""
    if "trial" not in metafunc.fixturenames:
        return
    only = [mark.args[0] for mark in metafunc.definition.iter_markers("only")]
    tools = [item for item in SHIPPED if all(holds(item) for holds in only)]
    metafunc.parametrize("trial", tools, ids=[item.name for item in tools], indirect=True)


@dataclass
class Trial:
    """One tool in its scene, with one call that fits."""

    tool: RegisteredTool
    scene: Scene
    ctx: Context
    raw: Data

    @property
    def hands(self) -> Hands:
        return HANDS.get(self.tool.name, Hands())

    @property
    def args(self) -> BaseModel:
        return self.tool.parse(self.raw)

    @property
    def impl(self) -> Any:
        return self.tool.impl

    def of_another(self) -> "Trial":
        """A call of the same tool that is none of ours."""
        ctx = replace(self.ctx, request_id=f"req_{uuid4().hex}", items=ItemsInMemory())
        return replace(self, ctx=ctx, raw=self.hands.fit(self.scene, example_of(self.tool)))

    def prepare(self) -> Draft | None:
        """As a ledger keeps it: as JSON."""
        draft = self.impl.prepare(self.ctx, self.args) if self.tool.has_prepare else None
        return draft and Draft(json.loads(json.dumps(draft.data)), draft.hold)

    def commit(self, draft: Draft | None = None) -> Receipt:
        receipt: Receipt = self.impl.commit(self.ctx, self.args, draft)
        return Receipt(json.loads(json.dumps(receipt.data)), receipt.response)

    def act(self) -> Receipt:
        return self.commit(self.prepare())

    def lookup(self) -> Any:
        return self.impl.lookup(self.ctx)

    def undo(self, receipt: Receipt) -> Any:
        return self.impl.compensate(self.ctx, receipt)

    def wait_until_landed(self) -> None:
        """Until the world has had the effect: it may still be at it."""
        deadline = time.monotonic() + 10
        while not self.landed():
            assert time.monotonic() < deadline, "the effect never came"
            time.sleep(0.02)

    def landed(self) -> int:
        """How many effects of this call stand in the world, items counted as one."""
        stand = [each for each in self.scene.effects(self.ctx) if each.undone_at is None]
        return len({each.call_key for each in stand} if self.tool.has_items else stand)


@pytest.fixture
def trial(
    request: pytest.FixtureRequest,
    world: RunningWorld,
    settings: Settings,
    tmp_path: Path,
    new_context: NewContext,
) -> Any:
    """The tool, in a world that is up, with its first example."""
    tool: RegisteredTool = request.param
    scene = Scene(world, settings, tmp_path)
    raw = example_of(tool)
    hands = HANDS.get(tool.name, Hands())
    with opened(world.folder):
        yield Trial(tool, scene, new_context(), hands.fit(scene, raw))


def with_secrets(tool: RegisteredTool, raw: Data) -> Data:
    """The example, with a value in each field that is secret."""
    fields = tool.json_schema()["properties"]
    return raw | {name: SECRET for name, field in fields.items() if has_secrets(field)}


def example_of(tool: RegisteredTool) -> Data:
    examples = tool.json_schema().get("examples")
    assert examples, (
        f"{tool.name}: give its arguments model an example that works in the demo world: "
        'model_config = ConfigDict(json_schema_extra={"examples": [{…}]})'
    )
    return dict(examples[0])


def acts(item: RegisteredTool) -> bool:
    return item.tier is not Tier.READ_ONLY
