"""What a call that waits for people asks of them: why, how many have agreed, who may answer."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group
from django.utils.translation import gettext as _

from agentruns.models import Run, ToolCall
from agentruns.page.people import names_of
from agentruns.page.words import when
from agentruns.protocol.advance import double_of
from agentruns.protocol.consent import DUPLICATE, needed, rules_of, voices
from agentruns.protocol.ledger import person
from agentruns.rights import may_approve
from tools.policy import Policy


@dataclass(frozen=True)
class Question:
    """One question as one viewer reads it. `why`: why it asks, where that is not plain; `so_far`:
    who has agreed, where one person is not enough; `waits_for`: whose word is missing, for
    somebody who may not say it, or has.
    """

    why: str
    so_far: str
    may_answer: bool
    waits_for: str


def question_of(call: ToolCall, run: Run, user: Any) -> Question | None:
    """What the call asks; None if it asks nothing."""
    if call.state != "awaiting_approval":
        return None
    policy = rules_of(call)
    said = voices(call, policy)
    has_said = user.is_authenticated and person(user) in said
    is_theirs = may_approve(user, run, policy.approver_group)
    return Question(
        why=" ".join(filter(None, [policy.why, why_it_asks(call)])),
        so_far=_so_far(said, needed(call, policy)),
        may_answer=is_theirs and not has_said,
        waits_for=_("You have agreed. It waits for somebody else.")
        if has_said
        else _waits_for(policy),
    )


def why_it_asks(call: ToolCall) -> str:
    """“The same was already done at 10:02.”; "" where it is for the tool's own sake."""
    double = double_of(call) if call.reason == DUPLICATE else None
    if double is None:
        return ""
    if double.state == "landed" and double.ended_at:
        return _("The same was already done at %(time)s.") % {"time": when(double.ended_at)}
    if double.state in ("in_flight", "in_doubt") and double.gate_passed_at:
        words = {"time": when(double.gate_passed_at)}
        return _("The same left at %(time)s, and it is not known yet what became of it.") % words
    if double.state == "failed" and double.gate_passed_at:
        words = {"time": when(double.gate_passed_at)}
        return _("The same left at %(time)s and was not found. It may still arrive.") % words
    return _("It asks for the same twice.")


def _so_far(said: set[str], of: int) -> str:
    """“1 of 2 approvals: Ana”."""
    if of < 2:
        return ""
    words = _("%(given)d of %(needed)d approvals") % {"given": len(said), "needed": of}
    names = sorted(names_of(said).values())
    return f"{words}: {', '.join(names)}" if names else words


def _waits_for(policy: Policy) -> str:
    if policy.approver_group is None:
        return _("It waits for the owner or a reviewer.")
    group = Group.objects.get(pk=policy.approver_group)
    return _("It waits for somebody from the group “%(group)s”.") % {"group": group.name}
