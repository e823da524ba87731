"""Programs that a tool starts: the one place that starts them, so that none outlives its executor.

An executor that is killed (-9) ends nothing: what it had started would go on, and land long after
Stop has said that nothing is left. So each program has a keeper (tools/keeper.py), a process of
its own between it and us. We hold one end of a pipe; when that is closed, by us or because we are
no more, the keeper ends the program with all that came of it: `git push` with its helpers and
hooks, `npx` with its `node`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_KEEPER = Path(__file__).with_name("keeper.py")


class Lifeline:
    """The pipe between this process and a keeper: `held` is the keeper's end."""

    def __init__(self) -> None:
        self.held, self._ours = os.pipe()
        self._is_cut = False

    def cut(self) -> None:
        """Have the program end."""
        if not self._is_cut:
            self._is_cut = True
            os.close(self._ours)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cut()
        os.close(self.held)


def kept(argv: list[str], lifeline: int) -> list[str]:
    """The command that runs a program under a keeper, which inherits the lifeline's end under this
    number; where that is 2, the program's own standard error goes nowhere.

    Raises FileNotFoundError if there is no such program.
    """
    if shutil.which(argv[0]) is None:
        raise FileNotFoundError(f"there is no program {argv[0]}")
    # Isolated, and without what is installed: it is there in a few milliseconds.
    return [sys.executable, "-I", "-S", str(_KEEPER), str(lifeline), *argv]


@contextmanager
def started(argv: list[str], **options: Any) -> Iterator["subprocess.Popen[str]"]:
    """The program, started as subprocess.Popen does; at the end of the block, whatever is left of
    it is ended.
    """
    with (
        Lifeline() as line,
        subprocess.Popen(
            kept(argv, line.held),
            pass_fds=[line.held],
            start_new_session=True,
            encoding="utf-8",
            errors="replace",
            **options,
        ) as process,
    ):
        try:
            yield process
        finally:
            line.cut()
