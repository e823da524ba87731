"""Statements of the hot path: written out by hand, planned by Postgres once per connection.

The ORM takes half a millisecond to compose a query that the database answers in a tenth of that,
and a durable call makes a dozen of them. So what every call does is said in SQL, and everything
else through the ORM. Rows come back as the models' own instances, so nothing else changes: not
the state machine, not the triggers, not Django's log of statements. Texts are made once, too.
"""

import json
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections, models
from psycopg import Cursor

M = TypeVar("M", bound=models.Model)


class _Prepared(Cursor[Any]):
    """Has the server keep the plan; a text that comes again is only given new parameters."""

    def execute(self, query: Any, params: Any = None, **more: Any) -> Any:
        return super().execute(query, params, prepare=True, **more)


def run(sql: str, params: Sequence[Any] = ()) -> Any:
    """Execute one statement on Django's connection, in its transaction; returns the cursor."""
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.queries_logged:
        cursor: Any = connection.cursor()  # of a prepared one, Django could not say what it did
    else:
        connection.ensure_connection()
        real = connection.connection
        real.prepare_threshold = 0  # Django switches preparing off, also where it is asked for
        cursor = connection.make_cursor(_Prepared(real))  # type: ignore[arg-type]
    cursor.execute(sql, params)
    return cursor


def row(sql: str, params: Sequence[Any] = ()) -> Any:
    """The first row that a statement returns, or None."""
    return run(sql, params).fetchone()


class Rows(Generic[M]):
    """The rows of one model: its columns for a SELECT, and its instances from what comes back.

    With `names`, of these fields alone; never so for a model with a state machine, which must not
    load the others later (see models/run.py).
    """

    def __init__(self, model: type[M], *names: str) -> None:
        self.model = model
        self._only = names

    @cached_property
    def _fields(self) -> list[Any]:
        fields = self.model._meta.concrete_fields
        return [each for each in fields if not self._only or each.name in self._only]

    @cached_property
    def _names(self) -> list[str]:
        return [field.attname for field in self._fields]

    @cached_property
    def _json(self) -> list[int]:
        """Where text has to be read as JSON: Django tells the connection not to."""
        return [n for n, field in enumerate(self._fields) if isinstance(field, models.JSONField)]

    @cached_property
    def width(self) -> int:
        """How many columns there are."""
        return len(self._fields)

    def columns(self, alias: str) -> str:
        """Every column, in the order that `instance` expects."""
        return ", ".join(f'{alias}."{field.column}"' for field in self._fields)

    def instance(self, values: Sequence[Any]) -> M:
        """The model's instance, from the values in the order of `columns`."""
        values = list(values)
        for place in self._json:
            if values[place] is not None:
                values[place] = json.loads(values[place])
        return self.model.from_db(DEFAULT_DB_ALIAS, self._names, values)

    def first(self, rest: str, params: Sequence[Any]) -> M | None:
        """The first row of the model's table `t`, the `rest` of the statement being as given."""
        found = row(self._select(rest), params)
        return None if found is None else self.instance(found)

    def all(self, rest: str, params: Sequence[Any]) -> list[M]:
        """Every row, as in `first`."""
        return [self.instance(values) for values in run(self._select(rest), params)]

    @cache  # noqa: B019  (Rows are few, and live as long as the process)
    def _select(self, rest: str) -> str:
        return f"SELECT {self.columns('t')} FROM {self.model._meta.db_table} t {rest}"  # noqa: S608


def split(values: Sequence[Any], parts: Sequence[Rows[Any]]) -> list[Any]:
    """The instances from a row that has the columns of several models, one after the other; None
    for one that an outer join did not find.
    """
    found, begin = [], 0
    for part in parts:
        own = values[begin : begin + part.width]
        begin += part.width
        found.append(None if all(each is None for each in own) else part.instance(own))
    return found


def update(of: models.Model, names: tuple[str, ...]) -> tuple[str, list[Any]]:
    """The statement that saves these fields of one row, and its parameters; to be continued by
    whoever has a further condition.
    """
    sql, fields = _update(type(of), names)
    connection = connections[DEFAULT_DB_ALIAS]
    values = [each.get_db_prep_save(getattr(of, each.attname), connection) for each in fields]
    return sql, [*values, of.pk]


@cache
def _update(model: type[models.Model], names: tuple[str, ...]) -> tuple[str, list[Any]]:
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    sets = ", ".join(f'"{field.column}" = %s' for field in fields)
    key = model._meta.pk.column
    return f'UPDATE {model._meta.db_table} SET {sets} WHERE "{key}" = %s', fields  # noqa: S608
