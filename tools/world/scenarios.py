"""Scenarios: the scripts that the demo's model provider plays, one YAML file each.

A scenario names an example goal, the agent that it belongs to, and turns of steps. Files are
read strictly, and a mistake is refused with the file and the line it stands in.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from django.utils.translation import gettext as _

from tools.errors import ToolError
from tools.strictyaml import StrictReader, construct

FOLDER = Path(__file__).with_name("scenarios")
CUTS = ("connection", "eof", "length", "malformed")
FINISHES = ("stop", "tool_calls", "length", "content_filter")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NEXT_DAY = re.compile(rf"@next-({'|'.join(WEEKDAYS)}) ([01]\d|2[0-3]):([0-5]\d)")


class ScenarioError(ToolError):
    """A scenario file has a mistake. `data` holds its `file` and its `line`, from 1."""

    code = "bad_scenario"


@dataclass(frozen=True)
class Say:
    """Prose, streamed word by word."""

    text: str


@dataclass(frozen=True)
class Call:
    """A tool call. Its arguments stream in pieces; see `dated` for those that hold a date."""

    tool: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Pause:
    """Silence, in seconds at a pace of 1."""

    seconds: float


@dataclass(frozen=True)
class Results:
    """Prose made of the tool results in the history: one line for each.

    `new` limits it to what came back since the model last spoke.
    """

    new: bool = False


@dataclass(frozen=True)
class Cut:
    """Break the stream inside the call before it.

    `connection` drops it, `eof` ends it early and politely, `length` runs into the token limit,
    `malformed` finishes as if all were well with arguments that are not JSON.
    """

    kind: str


@dataclass(frozen=True)
class Finish:
    """End the turn with this finish reason, in place of the one that follows from its steps."""

    reason: str


Step: TypeAlias = Say | Call | Pause | Results | Cut | Finish
Turn: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True)
class ScenarioAgent:
    """The agent that the demo offers for a scenario; `tools` are names of registered tools."""

    name: str
    description: str
    tools: tuple[str, ...]


@dataclass(frozen=True)
class Scenario:
    """One script. `pace` is in tokens per second; `listed` ones are offered to people. `stop_at`:
    points where a drill of it is worth while, beside those of every scenario.
    """

    name: str
    title: str
    goal: str
    agent: ScenarioAgent
    turns: tuple[Turn, ...]
    pace: float
    listed: bool
    stop_at: tuple[str, ...] = ()


def load(name: str) -> Scenario:
    """The scenario that ships under this name; ScenarioError if there is none."""
    path = FOLDER / f"{name}.yaml"
    if path not in _files():
        known = ", ".join(file.stem for file in _files())
        sentence = _("There is no scenario “{name}”; known: {known}.")
        raise ScenarioError(sentence.format(name=name, known=known), code="unknown_scenario")
    return load_path(path)


def load_all() -> dict[str, Scenario]:
    """Every scenario that ships, by name."""
    return {path.stem: load_path(path) for path in _files()}


def load_path(path: Path) -> Scenario:
    """Read and check one file. Its name must be the scenario's: `inbox.yaml` holds `inbox`."""
    return _Reader(path).scenario()


def dated(value: Any, now: datetime) -> Any:
    """Replace each "@next-tuesday 10:00" inside `value` by that time, as ISO with UTC offset.

    It is the coming day of that name, never today, in the local time of this process.
    """
    if isinstance(value, dict):
        return {key: dated(item, now) for key, item in value.items()}
    if isinstance(value, list):
        return [dated(item, now) for item in value]
    if isinstance(value, str) and (match := NEXT_DAY.fullmatch(value)):
        day, hour, minute = match.groups()
        ahead = (WEEKDAYS.index(day) - now.weekday() - 1) % 7 + 1
        moment = datetime.combine(now.date() + timedelta(days=ahead), time(int(hour), int(minute)))
        return moment.astimezone().isoformat()
    return value


def _files() -> list[Path]:
    return sorted(FOLDER.glob("*.yaml"))


class _Reader(StrictReader):
    """Turns one file into a Scenario; works on YAML nodes, because these know their lines."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, ScenarioError)
        self.steps: dict[str, Callable[[yaml.Node], Step]] = {
            "say": lambda node: Say(self.text(node)),
            "call": self.call,
            "pause": lambda node: Pause(self.number(node, least=0)),
            "results": self.results,
            "cut": lambda node: Cut(self.choice(node, CUTS)),
            "finish": lambda node: Finish(self.choice(node, FINISHES)),
        }

    def scenario(self) -> Scenario:
        root = self.root()
        required = ("name", "title", "goal", "agent", "turns")
        fields = self.mapping(root, required, optional=("pace", "listed", "stop_at"))
        name = self.text(fields["name"])
        if name != self.path.stem:
            problem = _("the name is “{name}”, but the file is called “{file}”")
            self.refuse(fields["name"], problem.format(name=name, file=self.path.name))
        return Scenario(
            name=name,
            title=self.text(fields["title"]),
            goal=self.text(fields["goal"]),
            agent=self.agent(fields["agent"]),
            turns=tuple(self.turn(node) for node in self.sequence(fields["turns"])),
            pace=self.number(fields["pace"], least=1) if "pace" in fields else 30.0,
            listed=self.flag(fields["listed"]) if "listed" in fields else False,
            stop_at=self.texts(fields["stop_at"]) if "stop_at" in fields else (),
        )

    def agent(self, node: yaml.Node) -> ScenarioAgent:
        fields = self.mapping(node, ("name", "description", "tools"))
        return ScenarioAgent(
            name=self.text(fields["name"]),
            description=self.text(fields["description"]),
            tools=self.texts(fields["tools"]),
        )

    def turn(self, node: yaml.Node) -> Turn:
        nodes = self.sequence(node)
        steps = tuple(self.step(item) for item in nodes)
        for position, step in enumerate(steps):
            last = position == len(steps) - 1
            if isinstance(step, Cut | Finish) and not last:
                self.refuse(nodes[position], _("nothing can follow a cut or a finish in its turn"))
            if isinstance(step, Cut) and not (position and isinstance(steps[position - 1], Call)):
                self.refuse(nodes[position], _("a cut must follow the call that it breaks"))
        return steps

    def step(self, node: yaml.Node) -> Step:
        pairs = self.pairs(node)
        if len(pairs) != 1:
            self.refuse(node, _("a step has exactly one key, such as “say”"))
        ((name, key, value),) = pairs
        if name not in self.steps:
            problem = _("unknown step “{name}”; known: {known}")
            self.refuse(key, problem.format(name=name, known=", ".join(self.steps)))
        return self.steps[name](value)

    def call(self, node: yaml.Node) -> Call:
        fields = self.mapping(node, ("tool", "args"))
        self.pairs(fields["args"])
        return Call(tool=self.text(fields["tool"]), args=self.plain(fields["args"]))

    def results(self, node: yaml.Node) -> Results:
        value = self.plain(node)
        if value not in (True, "new"):
            self.refuse(node, _("“results” takes true or new"))
        return Results(new=value == "new")

    def plain(self, node: yaml.Node) -> Any:
        """The node as JSON data: numbers, text, lists and maps; a date needs quotes."""
        if isinstance(node, yaml.MappingNode):
            return {name: self.plain(value) for name, _key, value in self.pairs(node)}
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item) for item in node.value]
        value = construct(node)
        if isinstance(value, str) and value.startswith("@") and not NEXT_DAY.fullmatch(value):
            problem = _("“{value}” is no time; write it like “@next-tuesday 10:00”")
            self.refuse(node, problem.format(value=value))
        if not isinstance(value, str | int | float | bool | None):
            self.refuse(node, _("this value is not text or a number; put it in quotes"))
        return value
