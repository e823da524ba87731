"""The cells of the matrix, and the written rules by which some of them make no sense."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.matrix.axes import BOUNDARIES, TIERS, Boundary, Disturbance, Mode, Who
from tools import registry
from tools.contract import Tier
from tools.registry import RegisteredTool

# The tool of both calls of a tier's script (tools/world/scenarios/tier-*.yaml), and its server.
TOOLS = {
    Tier.READ_ONLY: "mail.search",
    Tier.REVERSIBLE: "calendar.create_event",
    Tier.COMPENSABLE: "chat.post_message",
    Tier.IRREVERSIBLE: "email.send",
}
# The same for calls with several items.
ANNOUNCE = "announce"
ANNOUNCING = "chat.announce"


@dataclass(frozen=True)
class Cell:
    """One run: led to a boundary, stopped there or not, with one disturbance."""

    boundary: Boundary
    disturbance: Disturbance
    tier: Tier
    mode: Mode

    @property
    def id(self) -> str:
        """For people, and to choose it on the command line."""
        return f"{self.boundary.point}/{self.disturbance}/{self.tier}/{self.mode}"

    @property
    def scenario(self) -> str:
        return ANNOUNCE if self.boundary.is_between_items else script_of(self.tier)

    @property
    def tool(self) -> RegisteredTool:
        name = ANNOUNCING if self.boundary.is_between_items else TOOLS[self.tier]
        found = registry.get(name)
        assert found is not None
        return found

    @property
    def is_stopped(self) -> bool:
        """Whether Stop is pressed at the boundary."""
        return self.mode in (Mode.DISCARD, Mode.FREEZE)

    @property
    def is_found_late(self) -> bool:
        """Whether its call has an effect that is only seen by a look-up, some time after."""
        is_of_call = self.boundary.point.split(":")[0] != "undo"
        return self.disturbance.is_late and is_of_call and self.tool.has_lookup

    @property
    def is_shared(self) -> bool:
        """Whether its disturbance hits every run at once: it is played in a batch of such."""
        restarts = self.disturbance in (Disturbance.REDIS, Disturbance.POSTGRES)
        # An executor has a process of its own; the others share theirs.
        kills = self.disturbance is Disturbance.KILL and self.boundary.who is not Who.ACT
        return restarts or kills

    @property
    def left_out(self) -> str:
        """Why the cell makes no sense; "" if it does."""
        return next((reason for reason, applies in RULES if applies(self)), "")


def script_of(tier: Tier) -> str:
    """The scenario of a tier."""
    return f"tier-{tier.replace('_', '-')}"


def cells() -> Iterator[Cell]:
    """Every cell, those that make no sense too."""
    for boundary in BOUNDARIES:
        for disturbance in Disturbance:
            for tier in TIERS:
                for mode in Mode:
                    yield Cell(boundary, disturbance, tier, mode)


def _at(*endings: str) -> Callable[[Cell], bool]:
    return lambda cell: cell.boundary.point.endswith(endings)


def _both(*conditions: Callable[[Cell], bool]) -> Callable[[Cell], bool]:
    return lambda cell: all(condition(cell) for condition in conditions)


def _is_read(cell: Cell) -> bool:
    return cell.tier is Tier.READ_ONLY


# The first that applies is the reason.
RULES: list[tuple[str, Callable[[Cell], bool]]] = [
    (
        "several items has only the announcing tool, which is compensable",
        _both(lambda cell: cell.tier is not cell.tool.tier, _at(":item:1")),
    ),
    ("a read goes out at once: it is never buffered", _both(_is_read, _at(":buffered"))),
    (
        "only an irreversible call asks for approval",
        _both(lambda cell: cell.tier is not Tier.IRREVERSIBLE, _at(":approved", ":approvals")),
    ),
    ("this tool drafts nothing", _both(lambda cell: not cell.tool.has_prepare, _at(":prepared"))),
    (
        "the demo's read reads a folder: no server that could refuse, or be slow",
        _both(_is_read, lambda cell: cell.disturbance.of_world or bool(cell.boundary.way.fault)),
    ),
    (
        "this tool cannot be looked up: a person answers",
        _both(
            lambda cell: not cell.tool.has_lookup,
            _at(":lookup", ":looked_up", ":resolved", ":lookups"),
        ),
    ),
    (
        "there is nothing to undo",
        lambda cell: cell.boundary.way.undoes and not cell.tool.has_compensate,
    ),
    (
        "Stop alone is what this column tries",
        lambda cell: cell.disturbance is Disturbance.NOTHING and cell.mode is Mode.NO_STOP,
    ),
    (
        "there is no undo that could be stopped",
        lambda cell: cell.mode is Mode.STOP_UNDO and not cell.boundary.way.undoes,
    ),
    (
        "the run has ended: there is nothing that Stop could keep",
        lambda cell: cell.boundary.has_ended and cell.mode is Mode.FREEZE,
    ),
    (
        "nothing is sent for the call between this boundary and the end",
        lambda cell: cell.disturbance.of_world and not cell.boundary.world,
    ),
]
