"""One folder that agents may write into, with what it takes to undo and to tell what happened.

Files are told apart by the SHA-256 of their content, "" where there is no file. A change is
`{path: [before, after]}`. What a file was before is kept under its hash, and each change is
logged before it is made and after, so that the truth can be told from log and folder after a
kill at any moment. All of it is in the hidden folder `.agentruns`, on the same disk: a file then
gets into its place by one rename.

Paths are walked folder by folder without following links, so nothing leads out of the folder.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from django.utils.translation import gettext as _

from tools.errors import NoEffect
from tools.journal import Journal

OWN = ".agentruns"
LOG = f"{OWN}/log.jsonl"
LARGEST = 20_000_000  # bytes: more than that is not kept, so it is not touched
ABSENT = ""
# The sides of a change.
BEFORE, AFTER = 0, 1

Changes = dict[str, list[str]]


class Folder:
    """Everything below `root`, which is made at the first change if it is missing."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._own = root / OWN
        self.log = Journal(root / LOG)

    @contextmanager
    def locked(self, timeout: float) -> Iterator[None]:
        """One change at a time. Raises NoEffect if others keep it for longer than `timeout` s."""
        for name in ("staged", "versions"):
            (self._own / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._own / "lock").open("a") as lock:
            deadline = time.monotonic() + timeout
            while not _try_lock(lock.fileno()):
                if time.monotonic() > deadline:
                    sentence = _("The folder is in use by somebody else.")
                    raise NoEffect("busy", sentence, is_passing=True)
                time.sleep(0.01)
            yield

    def digest(self, path: str) -> str:
        """The hash of what is there now, ABSENT if nothing is."""
        return hash_of(self.read(path))

    def read(self, path: str) -> bytes | None:
        """The content of a plain file, None if there is none.

        Raises NoEffect for what is no plain file of this folder, or too large to be kept.
        """
        try:
            with self._parent(path) as (folder, name):
                return _content(folder, name, path)
        except FileNotFoundError:
            return None

    def is_as(self, changes: Changes, side: int) -> bool:
        """Whether each file is as it was BEFORE, or as it was to become AFTER."""
        try:
            return all(self.digest(path) == sides[side] for path, sides in changes.items())
        except NoEffect:  # something that is no file, or too large: none of ours
            return False

    def missing(self, changes: Changes) -> list[str]:
        """The folders that the change would make, the outer ones first."""
        found = []
        for path, sides in changes.items():
            outer = [str(each) for each in reversed(PurePosixPath(path).parents)][1:]
            if sides[AFTER] != ABSENT:
                found += [each for each in outer if not (self._root / each).is_dir()]
        return found

    # --- What is made ready -----------------------------------------------------------------

    def stage(self, kind: str, request_id: str, contents: dict[str, bytes]) -> None:
        """Keep these for a change to come, safe on the disk, in place of earlier ones: `after`
        is to be put in its place, `before` is to be kept.
        """
        self.unstage(kind, request_id)
        folder = self._staged(kind, request_id)
        folder.mkdir(parents=True)
        for name, content in contents.items():
            with (folder / name).open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())

    def is_staged(self, kind: str, request_id: str) -> bool:
        return self._staged(kind, request_id).is_dir()

    def unstage(self, kind: str, request_id: str) -> None:
        """Drop it; harmless if there is nothing."""
        shutil.rmtree(self._staged(kind, request_id), ignore_errors=True)

    def staged(self, kind: str) -> list[str]:
        """The request ids of all that is staged."""
        folder = self._own / "staged" / kind
        return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []

    def keep(self, kind: str, request_id: str, changes: Changes) -> None:
        """Move the content from before, if any is staged, to the versions, where it stays."""
        before = self._staged(kind, request_id) / "before"
        if before.exists():
            (sides,) = changes.values()
            os.replace(before, self._version(sides[BEFORE]))
            _sync(self._own / "versions")

    # --- What is done, by one step of the file system ----------------------------------------

    def apply(self, kind: str, request_id: str, changes: Changes) -> None:
        """Make the change: of two files, the first gets the name of the second."""
        if len(changes) > 1:
            self._move(*changes)
            return
        ((path, (before, after)),) = changes.items()
        if after == ABSENT:
            self._remove(path)
        else:
            staged = self._staged(kind, request_id) / "after"
            self._place(staged, path, replace=before != ABSENT)

    def can_revert(self, changes: Changes) -> bool:
        """Whether what was there before is there to be put back."""
        ((before, _after), *others) = changes.values()
        return bool(others) or before == ABSENT or self._version(before).is_file()

    def revert(self, changes: Changes) -> None:
        """Make the opposite change."""
        if len(changes) > 1:
            self._move(*reversed(changes))
            return
        ((path, (before, after)),) = changes.items()
        if before == ABSENT:
            self._remove(path)
            return
        copy = self._own / f"restored-{before}"
        shutil.copyfile(self._version(before), copy)
        _sync(copy)
        self._place(copy, path, replace=after != ABSENT)

    def remove_empty(self, folders: list[str]) -> None:
        """Remove these, as far as there is nothing in them."""
        for path in reversed(folders):
            with suppress(OSError, NoEffect), self._parent(path) as (folder, name):
                os.rmdir(name, dir_fd=folder)

    def _remove(self, path: str) -> None:
        with self._parent(path) as (folder, name):
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    def _move(self, path: str, to: str) -> None:
        # Nothing is at `to`: whoever makes changes here looked, under the lock.
        with self._parent(path) as (here, name), self._parent(to, make=True) as (there, new):
            os.rename(name, new, src_dir_fd=here, dst_dir_fd=there)
            os.fsync(there)
            os.fsync(here)

    def _place(self, source: Path, path: str, *, replace: bool) -> None:
        with self._parent(path, make=True) as (folder, name):
            if replace:
                mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
                source.chmod(mode)
                os.replace(source, name, dst_dir_fd=folder)
            else:
                # A link, because it never lands on a file that somebody made meanwhile.
                os.link(source, name, dst_dir_fd=folder)
                source.unlink()
            os.fsync(folder)

    def _staged(self, kind: str, request_id: str) -> Path:
        return self._own / "staged" / kind / PurePosixPath(request_id).name

    def _version(self, digest: str) -> Path:
        return self._own / "versions" / digest

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The folder that `path` is in, opened, and the file's name in it.

        Raises FileNotFoundError if there is no such folder (unless `make`), and NoEffect where a
        link, or something else that is no folder, is in the way.
        """
        *parents, name = path.split("/")
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in parents:
                below = _open_folder(folder, part, path, make=make)
                os.close(folder)
                folder = below
            yield folder, name
        finally:
            os.close(folder)


def _open_folder(folder: int, part: str, path: str, *, make: bool) -> int:
    if make:
        try:
            os.mkdir(part, dir_fd=folder)
            os.fsync(folder)
        except FileExistsError:
            pass
    try:
        return os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        raise _explained(error, path) from error


def _content(folder: int, name: str, path: str) -> bytes:
    try:
        # Not blocking: a pipe would be waited for.
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        raise _explained(error, path) from error
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise _no_file(path)
        if found.st_size > LARGEST:
            raise NoEffect("too_large", _("“%(name)s” is too large.") % {"name": path})
        with open(file, "rb", closefd=False) as stream:
            return stream.read()
    finally:
        os.close(file)


def _explained(error: OSError, path: str) -> Exception:
    """A link or a folder in the way is told in words; what is missing stays what it is."""
    return _no_file(path) if error.errno in (errno.ELOOP, errno.ENOTDIR) else error


def _no_file(path: str) -> NoEffect:
    return NoEffect("no_file", _("“%(name)s” is not a plain file.") % {"name": path})


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def hash_of(content: bytes | None) -> str:
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()


def last_entries(log: Journal, request_id: str) -> dict[str, dict[str, Any]]:
    """Of one call, the last entry of each kind."""
    return {
        entry["event"]: entry for entry in log.entries() if entry.get("request_id") == request_id
    }
