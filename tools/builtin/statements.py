"""The SQL that an operator lets agents run: named statements, each with its undo, from a YAML file.

Models choose a statement and give its parameters; they never write SQL. A file is read strictly,
and a mistake is refused with the file and the line it stands in:

    statements:
      - name: price_list.create
        title: {en: "Make the price list “{list}”", zh-hans: "新建价目表“{list}”"}
        params:
          list: {type: string, maxLength: 40}
        sql: INSERT INTO price_lists (name) VALUES (%(list)s) RETURNING name
        rows: 1
        undo: DELETE FROM price_lists WHERE name = %(list)s
        unless: SELECT 1 FROM prices WHERE list = %(list)s

`title` may show parameters. `rows` is how many rows `sql` has to change, any number if it is left
out. `undo` has to change as many rows as `sql` did: fewer means that somebody changed some since.
It and `unless`, which finds something only if somebody changed it since, may use the parameters,
and what `sql` returned: `%(rows)s`, a JSON list of objects.
"""

import json
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from tools.errors import ToolError
from tools.strictyaml import StrictReader, construct

NAME = re.compile(r"[a-z][a-z0-9_.]{0,79}")
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_LIMITS = {"integer": ("minimum", "maximum"), "number": ("minimum", "maximum")}
# What would end the transaction that it is to run in.
_OF_TRANSACTIONS = re.compile(
    r"\s*(begin|start|commit|end|rollback|abort|savepoint|release|prepare)\b", re.IGNORECASE
)
_PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|(%)|(.?))", re.DOTALL)

Scalar = str | int | float | bool


class StatementError(ToolError):
    """A file of statements has a mistake. `data` holds its `file` and its `line`, from 1."""

    code = "bad_statement"


@dataclass(frozen=True)
class Param:
    """`schema` is its JSON schema."""

    schema: dict[str, Any]

    def problem(self, value: Scalar) -> str:
        """What is wrong with this value, "" if nothing is."""
        kinds = TYPES[self.schema["type"]]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            return f"must be of type {self.schema['type']}"
        if "enum" in self.schema and value not in self.schema["enum"]:
            return f"must be one of {', '.join(map(str, self.schema['enum']))}"
        if isinstance(value, str):
            most = self.schema.get("maxLength", 1000)
            return f"must have at most {most} characters" if len(value) > most else ""
        if not self.schema.get("minimum", value) <= value <= self.schema.get("maximum", value):
            return f"must be from {self.schema.get('minimum')} to {self.schema.get('maximum')}"
        return ""


@dataclass(frozen=True)
class Statement:
    """One of them. `rows` is None where any number of rows will do; `unless` may be ""."""

    name: str
    titles: Mapping[str, str]
    params: Mapping[str, Param]
    sql: str
    rows: int | None
    undo: str
    unless: str

    def schema(self) -> str:
        """The JSON schema of each of its parameters, as JSON."""
        return json.dumps({name: param.schema for name, param in self.params.items()})

    def title(self, params: Mapping[str, Scalar]) -> str:
        """What it does with these parameters, in the language of whoever reads it."""
        title = self.titles.get(get_language() or "en", self.titles["en"])
        return title.format_map({name: params.get(name, "…") for name in self.params})

    def problems(self, params: Mapping[str, Scalar]) -> list[str]:
        """What is wrong with these parameters, one line for each."""
        found = [f"{name} is missing" for name in self.params.keys() - params.keys()]
        found += [f"{name} is unknown" for name in params.keys() - self.params.keys()]
        for name in self.params.keys() & params.keys():
            if problem := self.params[name].problem(params[name]):
                found.append(f"{name} {problem}")
        return sorted(found)


def load() -> dict[str, Statement]:
    """The statements of SQL_STATEMENTS, by name; none if it is not set. Raises StatementError."""
    if not settings.SQL_STATEMENTS:
        return {}
    path = Path(settings.SQL_STATEMENTS)
    try:
        changed_at = path.stat().st_mtime_ns
    except OSError as error:
        sentence = _("The file of SQL_STATEMENTS cannot be read: {problem}")
        raise StatementError(sentence.format(problem=error)) from error
    return _load(path, changed_at)


@lru_cache(maxsize=4)
def _load(path: Path, changed_at: int) -> dict[str, Statement]:
    return _Reader(path, StatementError).statements()


class _Reader(StrictReader):
    def statements(self) -> dict[str, Statement]:
        found: dict[str, Statement] = {}
        for node in self.sequence(self.mapping(self.root(), ("statements",))["statements"]):
            statement = self.statement(node)
            if statement.name in found:
                self.refuse(node, _("“{name}” stands here twice").format(name=statement.name))
            found[statement.name] = statement
        return found

    def statement(self, node: yaml.Node) -> Statement:
        fields = self.mapping(node, ("name", "title", "sql", "undo"), ("params", "rows", "unless"))
        name = self.text(fields["name"])
        if not NAME.fullmatch(name):
            self.refuse(fields["name"], _("a name has small letters, digits, “_” and “.”"))
        nodes = self.pairs(fields["params"]) if "params" in fields else []
        params = {key: self.param(key, key_node, value) for key, key_node, value in nodes}
        rows = int(self.number(fields["rows"], least=0)) if "rows" in fields else None
        afterwards = params.keys() | {"rows"}
        return Statement(
            name=name,
            titles=self.titles(fields["title"], params.keys()),
            params=params,
            sql=self.sql(fields["sql"], params.keys()),
            rows=rows,
            undo=self.sql(fields["undo"], afterwards),
            unless=self.sql(fields["unless"], afterwards) if "unless" in fields else "",
        )

    def param(self, name: str, key: yaml.Node, node: yaml.Node) -> Param:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name == "rows":
            self.refuse(key, _("a parameter has small letters, digits and “_”, and is not “rows”"))
        kind = self.choice(self.mapping_of(node)["type"], tuple(TYPES))
        allowed = ("enum", "description", *_LIMITS.get(kind, ()))
        allowed += ("maxLength",) if kind == "string" else ()
        fields = self.mapping(node, ("type",), allowed)
        schema: dict[str, Any] = {"type": kind}
        for limit in ("minimum", "maximum", "maxLength"):
            if limit in fields:
                least = 1 if limit == "maxLength" else float("-inf")
                number = self.number(fields[limit], least=least)
                schema[limit] = int(number) if number.is_integer() else number
        if "description" in fields:
            schema["description"] = self.text(fields["description"])
        if "enum" in fields:
            schema["enum"] = [construct(each) for each in self.sequence(fields["enum"])]
        return Param(schema)

    def mapping_of(self, node: yaml.Node) -> dict[str, yaml.Node]:
        """A map that has a type; what else it may have depends on it."""
        fields = {name: value for name, _key, value in self.pairs(node)}
        if "type" not in fields:
            self.refuse(node, _("“{name}” is missing").format(name="type"))
        return fields

    def titles(self, node: yaml.Node, params: Any) -> dict[str, str]:
        fields = self.mapping(node, ("en",), tuple(name for name, _title in settings.LANGUAGES))
        titles = {language: self.text(value) for language, value in fields.items()}
        for language, title in titles.items():
            try:
                parts = list(string.Formatter().parse(title))
            except ValueError:
                self.refuse(fields[language], _("a brace in a title is around a parameter"))
            for _text, name, spec, conversion in parts:
                if name is not None and (name not in params or spec or conversion):
                    problem = _("“{name}” is no parameter of this statement")
                    self.refuse(fields[language], problem.format(name=name))
        return titles

    def sql(self, node: yaml.Node, params: Any) -> str:
        text = self.text(node).strip().rstrip(";")
        if _OF_TRANSACTIONS.match(text):
            self.refuse(node, _("a statement runs in a transaction, and does not end it"))
        for name, percent, stray in _PLACEHOLDER.findall(text):
            if not percent and name not in params:
                shown = f"%({name})s" if name else f"%{stray}"
                problem = _(
                    "“{name}” is no parameter of this statement; a percent sign is written twice"
                )
                self.refuse(node, problem.format(name=shown))
        return text
