"""YAML files that people write, read strictly: a mistake is refused with its file and line."""

from pathlib import Path
from typing import Any, NoReturn

import yaml
from django.utils.translation import gettext as _

from tools.errors import ToolError


class StrictReader:
    """Works on YAML nodes, because these know their lines.

    What is refused is raised as `error`, whose `data` holds the `file` and its `line`, from 1.
    """

    def __init__(self, path: Path, error: type[ToolError]) -> None:
        self.path = path
        self._error = error

    def root(self) -> yaml.Node:
        try:
            node = yaml.compose(self.path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            self.refuse_line(line, _("not YAML: {problem}").format(problem=error.problem))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            self.refuse_line(1, _("not YAML: {problem}").format(problem=error))
        if node is None:
            self.refuse_line(1, _("the file is empty"))
        return node

    def mapping(
        self, node: yaml.Node, required: tuple[str, ...], optional: tuple[str, ...] = ()
    ) -> dict[str, yaml.Node]:
        pairs = self.pairs(node)
        known = required + optional
        for name, key, _value in pairs:
            if name not in known:
                problem = _("unknown key “{name}”; known: {known}")
                self.refuse(key, problem.format(name=name, known=", ".join(known)))
        fields = {name: value for name, _key, value in pairs}
        for name in required:
            if name not in fields:
                self.refuse(node, _("“{name}” is missing").format(name=name))
        return fields

    def pairs(self, node: yaml.Node) -> list[tuple[str, yaml.Node, yaml.Node]]:
        """The entries of a map as (name, key node, value node), each name once."""
        if not isinstance(node, yaml.MappingNode):
            self.refuse(node, _("this must be a map of keys and values"))
        pairs = [(str(key.value), key, value) for key, value in node.value]
        seen: set[str] = set()
        for name, key, _value in pairs:
            if name in seen:
                self.refuse(key, _("“{name}” stands here twice").format(name=name))
            seen.add(name)
        return pairs

    def sequence(self, node: yaml.Node) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            self.refuse(node, _("this must be a list with at least one entry"))
        return list(node.value)

    def text(self, node: yaml.Node) -> str:
        value = construct(node) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(value, str) or not value.strip():
            self.refuse(node, _("this must be text, and not empty"))
        return value

    def texts(self, node: yaml.Node) -> tuple[str, ...]:
        return tuple(self.text(each) for each in self.sequence(node))

    def number(self, node: yaml.Node, *, least: float) -> float:
        value = construct(node) if isinstance(node, yaml.ScalarNode) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            self.refuse(node, _("this must be a number, at least {least}").format(least=least))
        return float(value)

    def flag(self, node: yaml.Node) -> bool:
        value = construct(node) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(value, bool):
            self.refuse(node, _("this must be true or false"))
        return value

    def choice(self, node: yaml.Node, known: tuple[str, ...]) -> str:
        value = str(node.value)
        if value not in known:
            problem = _("unknown value “{value}”; known: {known}")
            self.refuse(node, problem.format(value=value, known=", ".join(known)))
        return value

    def refuse(self, node: yaml.Node, problem: str) -> NoReturn:
        self.refuse_line(node.start_mark.line + 1, problem)

    def refuse_line(self, line: int, problem: str) -> NoReturn:
        file = self.path.name
        sentence = _("{file}, line {line}: {problem}")
        raise self._error(
            sentence.format(file=file, line=line, problem=problem), file=file, line=line
        )


def construct(node: yaml.Node) -> Any:
    """A scalar's value, by the safe rules of YAML."""
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    finally:
        loader.dispose()
