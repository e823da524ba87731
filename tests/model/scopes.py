"""What is explored: how many turns and attempts, which tools, and what people do besides Stop.

Two workers and two calls show every race of the protocol that takes two. What multiplies states
without meeting in a race (consent, a pause, a resume, a unit) has a scope of its own.
"""

from typing import NamedTuple


class Tool(NamedTuple):
    """What one call of the run is like."""

    is_read: bool = False
    needs_consent: bool = False
    drafts: bool = False


class Scope(NamedTuple):
    """One exploration: `people` may freeze, resume, pause and answer; `is_unit`: the calls are
    the steps of one atomic unit.
    """

    name: str
    tools: tuple[Tool, ...]
    turns: int = 2
    attempts: int = 2
    people: frozenset[str] = frozenset()
    is_unit: bool = False


READ, EFFECT, DRAFT = Tool(is_read=True), Tool(), Tool(drafts=True)
CONSENT = Tool(needs_consent=True)
KEEPING = frozenset({"freeze", "resume"})

EFFECTS = Scope("two effects", (EFFECT, DRAFT))
READ_AND_EFFECT = Scope("a read and an effect", (READ, EFFECT))
PAUSE = Scope("pause and go on", (READ, DRAFT), turns=1, people=frozenset({"pause"}))
RESUME = Scope("freeze, consent and resume", (EFFECT, CONSENT), attempts=1, people=KEEPING)
UNIT = Scope("an atomic unit", (EFFECT, DRAFT), people=KEEPING, is_unit=True)
ANSWERS = Scope("people who may be wrong", (EFFECT,), people=frozenset({"answer"}))

SCOPES = (EFFECTS, READ_AND_EFFECT, PAUSE, RESUME, UNIT, ANSWERS)
