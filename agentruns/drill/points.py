"""The points of a run at which a drill can act, and how people write them."""

import re
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agentruns.drill.errors import DrillError

NEVER = "never"
BEFORE_START = "before-start"

# As people write them, in the order in which a run comes to them.
PATTERNS = {
    NEVER: gettext_lazy("nowhere: the run goes on to its end"),
    BEFORE_START: gettext_lazy("before a worker has picked the run up"),
    "token:N": gettext_lazy("the model has written N tokens of the run"),
    "call:N:proposed": gettext_lazy("call N is on record"),
    "call:N:buffered": gettext_lazy("call N waits for the end of the answer (not a read)"),
    "call:N:gate": gettext_lazy("call N is past the gate, and not yet sent"),
    "call:N:sent": gettext_lazy("the effect of call N is out there, its outcome not on record"),
    "call:N:landed": gettext_lazy("the outcome of call N is on record"),
}
_NUMBERED = re.compile(r"(?P<kind>token|call):(?P<number>[1-9]\d{0,5})(:(?P<step>[a-z]+))?")


@dataclass(frozen=True)
class Point:
    """One point. `text` is how people and agentruns.pausepoints write it."""

    text: str

    @property
    def is_reached_by_a_worker(self) -> bool:
        return self.text not in (NEVER, BEFORE_START)

    @property
    def call(self) -> int | None:
        """The number of its call, if it is a point of one."""
        kind, *rest = self.text.split(":")
        return int(rest[0]) if kind == "call" else None


def point(text: str) -> Point:
    """The point that somebody wrote. Raises DrillError, which names the patterns."""
    match = _NUMBERED.fullmatch(text)
    pattern = text
    if match:
        step = match["step"]
        pattern = f"{match['kind']}:N" + (f":{step}" if step else "")
    if pattern not in PATTERNS or (pattern == text and "N" in text):
        raise DrillError(
            _("There is no point “%(text)s”. Points: %(patterns)s (N from 1).")
            % {"text": text, "patterns": ", ".join(PATTERNS)}
        )
    return Point(text)
