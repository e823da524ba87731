"""Data folders for the time of one process, under the system's folder for such things."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from agentruns.services.discover import StackLock, is_up
from agentruns.services.processes import end_leftovers

PREFIX = "agentruns-scratch-"


class ScratchFolder:
    """A locked folder that is gone after `remove`; also clears those of killed processes.

    Servers work in it or in a data folder right below it.
    """

    def __init__(self) -> None:
        _sweep()
        # Locked before it gets the name that others sweep.
        draft = Path(tempfile.mkdtemp(prefix="agentruns-new-")).resolve()
        self._lock = StackLock(draft)
        self._lock.acquire()
        self.path = draft.rename(draft.with_name(PREFIX + draft.name.rpartition("-")[2]))

    def remove(self) -> None:
        """Delete it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


def _sweep() -> None:
    for folder in Path(tempfile.gettempdir()).resolve().glob(f"{PREFIX}*"):
        with contextlib.suppress(FileNotFoundError):  # whose it was has just removed it
            if folder.stat().st_uid == os.geteuid() and not is_up(folder):
                for data_dir in (folder, *folder.iterdir()):
                    end_leftovers(data_dir)
                shutil.rmtree(folder, ignore_errors=True)
