"""What people read of a row, and how the ledger vouches for it.

An event says which shown columns were set with it (`LedgerEvent.sets`): plain facts as they are,
and content, which a person, a model or an outside system wrote, as a digest with its own salt.
The salt stands beside the content, in the row's `salts`: whoever erases the content erases its
salt with it. Then the chain still verifies, and the digest gives away nothing of what was there.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from django.db import models

from tools.digest import value_text

# What an event sets: of each row, by its name within the run, its columns.
Sets: TypeAlias = dict[str, dict[str, Any]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Shown:
    """The shown columns of a model. `name`: what a row is called in its run, or for a call and its
    items, in the events of the call.
    """

    name: Callable[[Any], str]
    facts: tuple[str, ...]
    content: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.facts, *self.content)


def salts_field() -> "models.JSONField[Any, Any]":
    """The column beside the content: a salt for each column that has any."""
    return models.JSONField(default=dict, blank=True, editable=False)


def seal(row: models.Model, names: Iterable[str] | None = None) -> Sets:
    """What an event says of these columns of the row, as they are now (default: of all). Gives the
    content among them new salts, which have to be saved with it.
    """
    shown: Shown | None = getattr(row, "SHOWN", None)
    if shown is None:
        return {}
    wanted = shown.columns if names is None else tuple(names)
    found = {name: fact(row, name) for name in wanted if name in shown.facts}
    for name in wanted:
        if name in shown.content:
            found[name] = _sealed(row, name)
    return {shown.name(row): found} if found else {}


def merged(*all_sets: Sets) -> Sets:
    """What one event says, of what several writes have set."""
    whole: Sets = {}
    for sets in all_sets:
        for name, columns in sets.items():
            whole[name] = whole.get(name, {}) | columns
    return whole


def fact(row: models.Model, name: str) -> Any:
    """A plain column as JSON has it, and as it is again when it is read back: a time in
    microseconds, an amount without zeros at its end.
    """
    field = row._meta.get_field(name)
    value = getattr(row, field.attname)  # type: ignore[union-attr]
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    if isinstance(field, models.DecimalField) and value is not None:
        return format(field.to_python(value).normalize(), "f")
    return value


def moment(said: int) -> datetime:
    """The time that `fact` wrote."""
    return _EPOCH + said * _MICROSECOND


def is_as_said(row: models.Model, name: str, said: Any) -> bool:
    """Whether a column is what an event has said of it; `said` is None where none ever did."""
    shown: Shown = row.SHOWN  # type: ignore[attr-defined]
    if name in shown.facts:
        return bool(fact(row, name) == (said if said is not None else _at_first(row, name)))
    value = getattr(row, name)
    if said is None:
        return not value
    salt = row.salts.get(name)  # type: ignore[attr-defined]
    return salt is not None and _digest(salt, value) == said


def _sealed(row: Any, name: str) -> str | None:
    value = getattr(row, name)
    others = {each: salt for each, salt in row.salts.items() if each != name}
    if not value:
        row.salts = others
        return None
    salt = secrets.token_hex(16)
    row.salts = others | {name: salt}
    return _digest(salt, value)


def _digest(salt: str, value: Any) -> str:
    return hashlib.sha256(f"{salt}\n{value_text(value)}".encode()).hexdigest()


def _at_first(row: models.Model, name: str) -> Any:
    """A column that nothing has been said of is as it was made."""
    default = row._meta.get_field(name).get_default()  # type: ignore[union-attr]
    return default() if callable(default) else default
