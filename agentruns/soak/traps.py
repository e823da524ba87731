"""Pause points from the player's side: who stands where, and who rings no doorbell."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from agentruns.pausepoints import file_of


@dataclass(frozen=True)
class Traps:
    """The pause points of all runs of a soak, as files in the stack's PAUSE_DIR."""

    root: Path

    def hold(self, run_id: str, point: str) -> None:
        """Have the first one who comes to the point wait there."""
        self._set(run_id, point, "hold")

    def silence(self, run_id: str, point: str) -> None:
        """Have whoever comes to the point ring no doorbell until its next point."""
        self._set(run_id, point, "lose")

    def held(self, run_id: str, point: str) -> int | None:
        """The process that stands at the point; None if nobody has come yet."""
        try:
            return int(json.loads(file_of(self.root, run_id, point, "reached").read_text())["pid"])
        except (OSError, ValueError):
            return None

    def release(self, run_id: str, point: str) -> None:
        """Let go whoever stands there, and nobody stands there any more."""
        file_of(self.root, run_id, point, "hold").unlink(missing_ok=True)

    def clear(self, run_id: str) -> int:
        """Take away all that was set for the run; returns how many doorbells were lost by it."""
        folder = self.root / run_id
        lost = sum(len(path.read_text().splitlines()) for path in folder.glob("*.lost"))
        shutil.rmtree(folder, ignore_errors=True)
        return lost

    def _set(self, run_id: str, point: str, what: str) -> None:
        path = file_of(self.root, run_id, point, what)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
