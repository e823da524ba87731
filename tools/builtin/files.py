"""Files in one folder: write, move, delete, each with a version to go back to."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from tools.builtin.folder import ABSENT, AFTER, BEFORE, Changes, Folder, hash_of, last_entries
from tools.builtin.paths import checked_path
from tools.builtin.words import shortened
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

DEEPEST = 8
# Whoever looks has the lock, which whoever changes holds until all is on record, or it has died.
UNDER_LOCK = 0.0  # seconds


def _name(path: str) -> str:
    if path.count("/") >= DEEPEST:
        raise ValueError(f"“{path}” has too many folders in it: {DEEPEST - 1} at most")
    return checked_path(path, hidden=False)


FileName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=300),
    AfterValidator(_name),
    Field(description="Where it is in the folder, like “folder/name.txt”."),
]


class WriteFile(BaseModel):
    """Write a text file. One that is there already is kept, unless `replace` is true."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"path": "notes/q3-review.md", "text": "# Q3 review\n\nTuesday, 10:00.\n"},
                {"path": "prices.csv", "text": "item,price\nchair,89\n", "replace": True},
            ]
        }
    )

    path: FileName
    text: Annotated[str, StringConstraints(max_length=200_000)]
    replace: bool = False


class MoveFile(BaseModel):
    """Give a file another name, or another place in the folder. Nothing may be there yet."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"path": "offer-draft.md", "to": "archive/offer-2025.md"}]}
    )

    path: FileName
    to: FileName

    @model_validator(mode="after")
    def _goes_elsewhere(self) -> Self:
        if self.to == self.path:
            raise ValueError("to must be another name than path")
        return self


class DeleteFile(BaseModel):
    """Delete a file. A version of it is kept, so it can come back."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"path": "old/todo-2024.txt"}]})

    path: FileName


class _InFolder:
    """What the three have in common: `prepare` stages, `commit` makes one change under a lock.

    The log has an entry `begun` with the hashes before and after, then the change is made, then
    `done` follows. So of a process that was killed in between, log and folder together say what
    it did. An undo makes the opposite change, and logs `undone`.
    """

    name: ClassVar[str]

    def prepare(self, ctx: Context, args: Any) -> Draft:
        """See whether it can be done, and keep aside what it takes."""
        with _without_effect(), _locked(ctx) as folder:
            done = _landed(folder, ctx)
            changes = done["changes"] if done else self._stage(folder, ctx.request_id, args)
        return Draft({"changes": changes})

    def void(self, ctx: Context, draft: Draft) -> None:
        """Drop what is staged."""
        with _locked(ctx) as folder:
            folder.unstage(self.name, ctx.request_id)

    def drafts(self) -> list[str]:
        """The request ids of all that is staged."""
        return Folder(Path(settings.FILES_DIR)).staged(self.name)

    def commit(self, ctx: Context, args: Any, draft: Draft | None) -> Receipt:
        """Make the change, if the files are still as `prepare` found them."""
        with _locked(ctx) as folder:
            if done := _landed(folder, ctx):
                return _receipt(done)
            with _without_effect():
                changes = draft.data.get("changes") if draft else None
                if not changes or not folder.is_staged(self.name, ctx.request_id):
                    changes = self._stage(folder, ctx.request_id, args)
                if not folder.is_as(changes, BEFORE):
                    folder.unstage(self.name, ctx.request_id)
                    raise NoEffect(
                        "changed", _("Somebody changed the file meanwhile, so nothing was done.")
                    )
                folder.keep(self.name, ctx.request_id, changes)
                ctx.sending()
                entry = _entry(ctx, self.name, changes, folder.missing(changes))
                folder.log.append("begun", **entry)
            _make(folder, self.name, ctx.request_id, changes)
            folder.log.append("done", **entry)
            folder.unstage(self.name, ctx.request_id)
        return _receipt(entry)

    def lookup(self, ctx: Context) -> LookupResult:
        """Ask the log; of a change that was begun, the folder says whether it was made."""
        try:
            with _locked(ctx) as folder:
                done = _landed(folder, ctx)
        except (NeitherWay, NoEffect, OSError) as error:
            return Unknown(str(error))
        return _receipt(done) if done else NotLanded()

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        """Make it as it was, if it is still as we left it."""
        changes: Changes = receipt.data.get("changes") or {}
        made: list[str] = receipt.data.get("folders") or []
        if not changes:
            return CannotUndo(_("The receipt does not say which file it was."))
        with _locked(ctx) as folder:
            if "undone" not in last_entries(folder.log, ctx.request_id):
                if not folder.is_as(changes, BEFORE):
                    if not folder.is_as(changes, AFTER):
                        return Changed(_found(folder, changes))
                    if not folder.can_revert(changes):
                        return CannotUndo(_("The version from before is not there any more."))
                    folder.revert(changes)
                folder.remove_empty(made)
                folder.log.append("undone", **_entry(ctx, self.name, changes, made))
        return UndoReceipt({"changes": changes}, _note(changes))

    def _stage(self, folder: Folder, request_id: str, args: Any) -> Changes:
        """Keep aside what the change takes; say what it will change. Raises NoEffect."""
        raise NotImplementedError


@tool("files.write", tier=Tier.REVERSIBLE, args=WriteFile, horizon=UNDER_LOCK)
class FilesWrite(_InFolder):
    name = "files.write"
    title = gettext_lazy("Write a file")
    explains = gettext_lazy(
        "Writes a text file into the shared folder. What was there before is kept, and can be put "
        "back."
    )
    undo_note = gettext_lazy(
        "Removes the file, or puts back the one that was there before, unless somebody changed it "
        "since."
    )

    def describe(self, args: WriteFile) -> str:
        said = {"name": args.path, "text": shortened(args.text)}
        if args.replace:
            return _("Write the file “%(name)s” over what is there: “%(text)s”") % said
        return _("Write a new file “%(name)s”: “%(text)s”") % said

    def _stage(self, folder: Folder, request_id: str, args: WriteFile) -> Changes:
        before, after = folder.read(args.path), args.text.encode()
        if before is not None and not args.replace:
            raise _exists(args.path)
        contents = {"after": after} | ({} if before is None else {"before": before})
        folder.stage(self.name, request_id, contents)
        return {args.path: [hash_of(before), hash_of(after)]}


@tool("files.move", tier=Tier.REVERSIBLE, args=MoveFile, horizon=UNDER_LOCK)
class FilesMove(_InFolder):
    name = "files.move"
    title = gettext_lazy("Move a file")
    explains = gettext_lazy(
        "Gives a file in the shared folder another name or place. It can be moved back."
    )
    undo_note = gettext_lazy("Moves the file back, unless somebody changed it since.")

    def describe(self, args: MoveFile) -> str:
        return _("Move the file “%(name)s” to “%(to)s”") % {"name": args.path, "to": args.to}

    def _stage(self, folder: Folder, request_id: str, args: MoveFile) -> Changes:
        content = _there(folder, args.path)
        if folder.read(args.to) is not None:
            raise _exists(args.to)
        folder.stage(self.name, request_id, {})
        return {args.path: [hash_of(content), ABSENT], args.to: [ABSENT, hash_of(content)]}


@tool("files.delete", tier=Tier.REVERSIBLE, args=DeleteFile, horizon=UNDER_LOCK)
class FilesDelete(_InFolder):
    name = "files.delete"
    title = gettext_lazy("Delete a file")
    explains = gettext_lazy(
        "Deletes a file from the shared folder. A version is kept, and can be put back."
    )
    undo_note = gettext_lazy("Puts the file back, unless another one has its name by now.")

    def describe(self, args: DeleteFile) -> str:
        return _("Delete the file “%(name)s”") % {"name": args.path}

    def _stage(self, folder: Folder, request_id: str, args: DeleteFile) -> Changes:
        content = _there(folder, args.path)
        folder.stage(self.name, request_id, {"before": content})
        return {args.path: [hash_of(content), ABSENT]}


class NeitherWay(Exception):
    """A change that was begun: the files are neither as before it nor as after it."""


@contextmanager
def _locked(ctx: Context) -> Iterator[Folder]:
    folder = Folder(Path(settings.FILES_DIR))
    with folder.locked(ctx.timeout):
        yield folder


@contextmanager
def _without_effect() -> Iterator[None]:
    """Around what comes before the effect: the disk's own troubles are told in words."""
    try:
        yield
    except OSError as error:
        sentence = _("The folder could not be used: %(reason)s.") % {"reason": error.strerror}
        raise NoEffect("refused", sentence, error=str(error)) from error


def _make(folder: Folder, kind: str, request_id: str, changes: Changes) -> None:
    try:
        folder.apply(kind, request_id, changes)
    except OSError:
        if not folder.is_as(changes, BEFORE):
            raise
        with _without_effect():
            raise


def _landed(folder: Folder, ctx: Context) -> Data | None:
    """What the log has of this call's change, if it was made; raises NeitherWay.

    A change that was made by a process that then died gets its `done` here.
    """
    logged = last_entries(folder.log, ctx.request_id)
    if "done" in logged or "begun" not in logged:
        return logged.get("done")
    begun = logged["begun"]
    changes = begun["changes"]
    if folder.is_as(changes, AFTER):
        return folder.log.append("done", **_entry(ctx, begun["tool"], changes, begun["folders"]))
    if folder.is_as(changes, BEFORE):
        return None
    raise NeitherWay(f"begun, and changed by somebody since: {', '.join(changes)}")


def _entry(ctx: Context, kind: str, changes: Changes, folders: list[str]) -> Data:
    """`folders` are those that are made for the change, and go with its undo."""
    return {"request_id": ctx.request_id, "tool": kind, "changes": changes, "folders": folders}


def _there(folder: Folder, path: str) -> bytes:
    content = folder.read(path)
    if content is None:
        raise NoEffect("missing", _("There is no file “%(name)s”.") % {"name": path})
    return content


def _exists(path: str) -> NoEffect:
    return NoEffect("exists", _("There is a file “%(name)s” already.") % {"name": path})


def _found(folder: Folder, changes: Changes) -> str:
    """What somebody made of the files since."""
    said = []
    for path, sides in changes.items():
        try:
            now = folder.digest(path)
        except NoEffect as error:
            said.append(str(error))
            continue
        if now == sides[AFTER]:
            continue
        if now == ABSENT:
            said.append(_("“%(name)s” is gone.") % {"name": path})
        elif sides[AFTER] == ABSENT:
            said.append(_("There is a new file “%(name)s” by now.") % {"name": path})
        else:
            said.append(_("Somebody changed “%(name)s” since.") % {"name": path})
    return " ".join(said)


def _note(changes: Changes) -> str:
    path, (before, after) = next(iter(changes.items()))
    if len(changes) > 1:
        return _("The file is back at “%(name)s”.") % {"name": path}
    if before == ABSENT:
        return _("The file “%(name)s” was removed.") % {"name": path}
    if after == ABSENT:
        return _("The file “%(name)s” is back.") % {"name": path}
    return _("The file “%(name)s” is as it was before.") % {"name": path}


def _receipt(entry: Data) -> Receipt:
    changes: Changes = entry["changes"]
    path, *others = changes
    verb = "written" if changes[path][AFTER] != ABSENT else "deleted"
    said = f"The file “{path}” was {verb}."
    if others:
        said = f"The file “{path}” was moved to “{others[0]}”."
    return Receipt({"changes": changes, "folders": entry["folders"]}, said)
