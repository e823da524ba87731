"""What django-fsm and the database triggers derive from a Machine of states.py."""

from collections.abc import Callable
from typing import Any

import pgtrigger
from django_fsm import FSMField, transition

from agentruns.states import Machine


def state_field(machine: Machine) -> FSMField:
    """A protected FSMField: only a transition may change it. Each model indexes what is looked
    for by it.
    """
    return FSMField(
        default=machine.initial, choices=machine.choices(), max_length=20, protected=True
    )


def verb(machine: Machine, name: str) -> Callable[..., None]:
    """The django-fsm transition method for one verb of `machine`."""
    declared = machine.verbs[name]

    def method(self: Any) -> None:
        """Change the state in memory; protocol.ledger.move() saves and records it."""

    method.__name__ = method.__qualname__ = name
    return transition(field=machine.field, source=list(declared.sources), target=declared.target)(
        method
    )


def state_triggers(machine: Machine) -> list[pgtrigger.Trigger]:
    """The database's own word on the machine: legal transitions, and where a row may be born.

    pgtrigger's FSM does not see INSERT, so a second trigger guards that.
    """
    return [
        pgtrigger.FSM(
            name=f"{machine.field}_transitions",
            field=machine.field,
            transitions=machine.pairs(),
            # Not for every write to the row: a run's is written for each event of its ledger.
            condition=_differs(f"old__{machine.field}", f"new__{machine.field}"),
        ),
        pgtrigger.Protect(
            name=f"{machine.field}_birth",
            operation=pgtrigger.Insert,
            condition=pgtrigger.Q(**{f"new__{machine.field}__df": machine.initial}),
        ),
    ]


def _differs(before: str, after: str) -> pgtrigger.Q:
    return pgtrigger.Q(**{f"{before}__df": pgtrigger.F(after)})


__all__ = ["state_field", "state_triggers", "verb"]
