"""Changes to a PostgreSQL database, by statements that an operator has registered."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Self

import psycopg
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from psycopg import errors
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tools.builtin import statements, twophase
from tools.builtin.http import why
from tools.builtin.twophase import Database, Effect
from tools.contract import (
    CannotUndo,
    Changed,
    Context,
    Data,
    Draft,
    LookupResult,
    NotLanded,
    Receipt,
    Tier,
    UndoReceipt,
    UndoResult,
    Unknown,
)
from tools.errors import NoEffect
from tools.registry import tool


def _schema(schema: dict[str, Any]) -> None:
    """Tell the model which statements there are, and what each of them takes."""
    known = statements.load()
    if not known:
        return
    lines = [
        f"{each.name}: {each.titles['en']}. It takes {each.schema()}" for each in known.values()
    ]
    schema["properties"]["statement"] |= {"enum": list(known), "description": "\n".join(lines)}
    schema["examples"] = [each for each in _EXAMPLES if each["statement"] in known]


_EXAMPLES: list[Data] = [
    {"statement": "price_list.raise", "params": {"list": "2026", "percent": 1}},
    {"statement": "price_list.create", "params": {"list": "2027"}},
]


class ExecuteStatement(BaseModel):
    """Run one of the registered statements on the database, in a transaction of its own."""

    model_config = ConfigDict(json_schema_extra=_schema)

    statement: str
    params: Annotated[
        dict[str, statements.Scalar], Field(description="What the statement takes, by name.")
    ] = {}

    @model_validator(mode="after")
    def _is_registered(self) -> Self:
        known = statements.load()
        if self.statement not in known:
            raise ValueError(f"no statement “{self.statement}”; known: {', '.join(known)}")
        if problems := known[self.statement].problems(self.params):
            raise ValueError("; ".join(problems))
        return self


# What is prepared no more, and has no row, never lands. What is still prepared may: a COMMIT that
# is on the wire reaches the server while its connection lives, which tcp_user_timeout ends.
ON_THE_WIRE = 30.0  # seconds


@tool("sql.execute", tier=Tier.COMPENSABLE, args=ExecuteStatement, horizon=ON_THE_WIRE)
class SqlExecute:
    """`prepare` does all of the work, up to PREPARE TRANSACTION; `commit` is COMMIT PREPARED."""

    title = gettext_lazy("Change the database")
    explains = gettext_lazy(
        "Runs one of the statements that your operator registered. Each has an undo, but others "
        "may have read the data meanwhile."
    )
    undo_note = gettext_lazy(
        "Runs the statement’s own undo, unless somebody changed the same data since."
    )

    def describe(self, args: ExecuteStatement) -> str:
        return _title(args.statement, args.params)

    def prepare(self, ctx: Context, args: ExecuteStatement) -> Draft:
        """Do the work in a transaction that waits for its last word."""
        with _database(ctx) as database:
            _prepare(database, ctx, args)
        return Draft({"gid": twophase.PREFIX + ctx.request_id})

    def void(self, ctx: Context, draft: Draft) -> None:
        """Roll the transaction back."""
        if settings.SQL_TOOL_URL:
            with _database(ctx) as database:
                twophase.roll_back(database, ctx.request_id)

    def drafts(self) -> list[str]:
        """The request ids of all transactions of ours that wait for their last word."""
        if not settings.SQL_TOOL_URL:
            return []
        with twophase.connected(settings.SQL_TOOL_URL, timeout=10.0) as database:
            return twophase.prepared(database)

    def commit(self, ctx: Context, args: ExecuteStatement, draft: Draft | None) -> Receipt:
        """Let it land. If nothing is prepared, it landed earlier, or is prepared anew."""
        with _database(ctx) as database:
            if draft is None:
                _prepare(database, ctx, args)
            ctx.sending()
            landed = twophase.commit(database, ctx.request_id)
            if not landed and twophase.find(database, ctx.request_id) is None:
                _prepare(database, ctx, args)
                ctx.sending()
                twophase.commit(database, ctx.request_id)
            effect = twophase.find(database, ctx.request_id)
        if effect is None:
            raise RuntimeError("it was committed, and its row is not there")
        return _receipt(effect)

    def lookup(self, ctx: Context) -> LookupResult:
        """Look for the transaction, then for its row.

        In this order: a transaction that is prepared has changed nothing that anybody sees, and
        once it is prepared no more, its row is there if it landed, for the server shows the row
        first. The other way round it could land between the two questions, and be missed.
        """
        try:
            with _database(ctx) as database:
                if ctx.request_id in twophase.prepared(database):
                    return NotLanded()
                effect = twophase.find(database, ctx.request_id)
        except (NoEffect, psycopg.Error) as error:
            return Unknown(why(error))
        return _receipt(effect) if effect else NotLanded()

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        """Run the undo that was registered when the effect landed, in one transaction."""
        if not receipt.data.get("statement"):
            return CannotUndo(_("The receipt does not say which statement it was."))
        try:
            with _database(ctx) as database, database.transaction() as transaction:
                result = _undo(database, ctx)
                if not isinstance(result, UndoReceipt):
                    raise psycopg.Rollback(transaction)
        except errors.IntegrityError as error:
            return Changed(_changed(twophase.words(error)))
        except (errors.DataError, errors.ProgrammingError) as error:
            return CannotUndo(twophase.refusal(error))
        return result


@contextmanager
def _database(ctx: Context) -> Iterator[Database]:
    if not settings.SQL_TOOL_URL:
        raise NoEffect("not_configured", _("No database is set up for agents."))
    with twophase.connected(settings.SQL_TOOL_URL, ctx.timeout) as database:
        yield database


def _prepare(database: Database, ctx: Context, args: ExecuteStatement) -> None:
    statement = statements.load()[args.statement]
    twophase.prepare(database, ctx.request_id, statement, dict(args.params))


def _undo(database: Database, ctx: Context) -> UndoResult:
    effect = twophase.find(database, ctx.request_id)
    if effect is None:
        return CannotUndo(_("The database has no record of it."))
    if twophase.begin_undo(database, effect):
        if twophase.has_changed(database, effect):
            return Changed(_changed(""))
        undone = twophase.undo(database, effect)
        if undone != effect.changed and effect.changed >= 0:
            return Changed(_changed(_rows(undone, effect.changed)))
    return UndoReceipt(_kept(effect), _note(effect))


def _changed(detail: str) -> str:
    said = _("The same data was changed since, so it was left as it is.")
    return f"{said} ({detail})" if detail else said


def _rows(found: int, expected: int) -> str:
    said = _("%(found)s of %(expected)s rows are as they were left")
    return said % {"found": found, "expected": expected}


def _note(effect: Effect) -> str:
    said = {"what": _title(effect.statement, effect.params), "count": effect.changed}
    if effect.changed < 0:
        return _("Undone: %(what)s.") % said
    return (
        ngettext(
            "Undone: %(what)s. %(count)s row is as it was before.",
            "Undone: %(what)s. %(count)s rows are as they were before.",
            effect.changed,
        )
        % said
    )


def _title(name: str, params: dict[str, Any]) -> str:
    """What people call it; a statement that is registered no more has only its name."""
    statement = statements.load().get(name)
    return statement.title(params) if statement else name


def _kept(effect: Effect) -> Data:
    return {"statement": effect.statement, "params": effect.params, "changed": effect.changed}


def _receipt(effect: Effect) -> Receipt:
    rows = "1 row was" if effect.changed == 1 else f"{effect.changed} rows were"
    count = f" {rows} changed." if effect.changed >= 0 else ""
    returned = json.dumps(effect.rows[:20], ensure_ascii=False, default=str)
    shown = f" It returned {returned}." if effect.rows else ""
    return Receipt(_kept(effect), f"The statement {effect.statement} was run.{count}{shown}")
