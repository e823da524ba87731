"""The model check from the command line: `make check-model`, or `python -m tests.model --help`."""

import argparse
import sys
import textwrap
import time

from tests.model.breaks import BREAKS, SECOND_DOORS
from tests.model.check import check_break, check_scope
from tests.model.deeds import told
from tests.model.invariants import OF_A_STATE, OF_A_STEP
from tests.model.liveness import check_liveness
from tests.model.scopes import SCOPES

NAMED = {each.name: each for each in (*BREAKS, *SECOND_DOORS)}
CHECKS = dict(sorted((OF_A_STEP | OF_A_STATE).items())) | {"I10": check_liveness}
say = sys.stdout.write


def main() -> int:
    """Exit 0 if everything holds; else 1, with the shortest trace that shows what does not."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--break", dest="name", choices=NAMED, help="break the protocol on purpose")
    parser.add_argument("--list", action="store_true", help="print the breaks")
    asked = parser.parse_args()
    if asked.list:
        say("".join(f"{b.name:<30} {b.against:<4} {b.words}\n" for b in NAMED.values()))
        return 0
    return show_break(asked.name) if asked.name else check_all()


def check_all() -> int:
    say(f"{'scope':<30}{'states':>9}{'transitions':>13}{'seconds':>9}{'changes':>9}\n")
    states = transitions = 0
    began = time.perf_counter()
    for scope in SCOPES:
        found = check_scope(scope)
        say(_line(scope.name, found.states, found.transitions, found.seconds, f"{found.depth:>9}"))
        if found.breach:
            say(f"\n{told(found.breach)}\n")
            return 1
        states, transitions = states + found.states, transitions + found.transitions
    say(_line("together", states, transitions, time.perf_counter() - began))
    say("\n(changes: of the database, at most, from Stop to settled)\n\nIn every state:\n")
    for name, check in CHECKS.items():
        text = textwrap.wrap(_first_sentence(check.__doc__ or ""), 92)
        say(textwrap.indent("\n".join(text), " " * 6).replace(" " * 6, f"  {name:<4}", 1) + "\n")
    say(f"\n{len(BREAKS)} deliberate breaks, each found: python -m tests.model --list\n")
    return 0


def show_break(name: str) -> int:
    broken = NAMED[name]
    found = check_break(broken)
    say(f"{broken.name}: {broken.words}\n")
    if found.breach is None:
        say(f"{broken.against} holds all the same, in {found.states:,} states.\n")
        return 0
    say(f"{told(found.breach)}\n")
    return 1


def _line(name: str, states: int, transitions: int, seconds: float, rest: str = "") -> str:
    return f"{name:<30}{states:>9,}{transitions:>13,}{seconds:>9.1f}{rest}\n"


def _first_sentence(doc: str) -> str:
    text = " ".join(doc.split())
    return text[: text.index(".") + 1]


if __name__ == "__main__":
    sys.exit(main())
