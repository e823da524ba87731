"""What the database keeps as it was written, whoever asks: triggers for rows that people read.

They fire on the columns that they name alone, so a write to any other costs nothing.
"""

from collections.abc import Iterable, Sequence

import pgtrigger


def whole(name: str) -> list[pgtrigger.Trigger]:
    """No row is deleted, and the table is not emptied."""
    return [pgtrigger.Protect(name=name, operation=pgtrigger.Delete), not_emptied()]


def append_only(name: str) -> list[pgtrigger.Trigger]:
    """Rows are added, and that is all."""
    return [
        pgtrigger.Protect(name=name, operation=pgtrigger.Update | pgtrigger.Delete),
        not_emptied(),
    ]


def not_emptied() -> pgtrigger.Trigger:
    """TRUNCATE, which no trigger for rows sees, is refused."""
    return pgtrigger.Trigger(
        name="is_not_emptied",
        level=pgtrigger.Statement,
        when=pgtrigger.Before,
        operation=pgtrigger.Truncate,
        func="RAISE EXCEPTION 'keeping: the table % is not emptied', TG_TABLE_NAME;",
    )


def fixed(name: str, *columns: str) -> pgtrigger.Trigger:
    """These are written with the row, and never again."""
    return kept(name, columns, when="true")


def once(name: str, *columns: str) -> list[pgtrigger.Trigger]:
    """These may be empty at first; once they say something, they say it for good. One trigger for
    each, named after it.
    """
    return [
        kept(f"{name}_{column}", [column], when=f"coalesce(OLD.{column}::text, '') <> ''")
        for column in columns
    ]


def kept(name: str, columns: Sequence[str], *, when: str) -> pgtrigger.Trigger:
    """These do not change while `when` holds, in SQL, of OLD and NEW."""
    return pgtrigger.Protect(
        name=name,
        operation=update_of(*columns),
        condition=changed(*columns, when=when),
    )


def update_of(*columns: str) -> pgtrigger.Operation:
    """Whoever names none of these columns is not asked."""
    return pgtrigger.UpdateOf(*columns)  # type: ignore[no-untyped-call]


def changed(*columns: str, when: str) -> pgtrigger.Condition:
    """SQL: whether any of these changes while `when` holds."""
    changes = " OR ".join(f'OLD."{each}" IS DISTINCT FROM NEW."{each}"' for each in columns)
    return pgtrigger.Condition(f"(({changes}) AND ({when}))")


def among(column: str, values: Iterable[str]) -> str:
    """SQL: whether this column has one of these values, before and after."""
    listed = ", ".join(f"'{each}'" for each in sorted(values))
    return f"OLD.{column} = NEW.{column} AND OLD.{column} IN ({listed})"


def grows(name: str, column: str) -> pgtrigger.Trigger:
    """A number that never becomes less."""
    return pgtrigger.Protect(
        name=name,
        operation=update_of(column),
        condition=pgtrigger.Condition(f"(NEW.{column} < OLD.{column})"),
    )
