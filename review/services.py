"""People deciding: approvals, and answers about what is in doubt.

The only writer of Approval. Each verb checks the person's right first: NotFound for somebody who
may not even see the run, NotAllowed for somebody who may see it but not decide.
"""

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils.translation import gettext as _

from agentruns import doorbell, pausepoints
from agentruns.errors import BadInput, NotAllowed, NotFound, WrongState
from agentruns.models import Run, ToolCall
from agentruns.protocol import consent, doubt
from agentruns.protocol.ledger import add, clock, lock_call
from agentruns.rights import Person, may_approve, may_decide, may_see, require
from agentruns.states import STOPPED_RUN, STOPPING_RUN
from review.models import Approval
from tools import registry
from tools.policy import effective

REASON_LIMIT = 500
EVIDENCE_LIMIT = 2000


def decide(call_id: str, *, by: Person, verdict: str, digest: str, reason: str = "") -> Approval:
    """Approve or reject the call that was shown with `digest`; returns the decision as kept.

    Where several people have to agree, each has a decision of their own, and the last one lets the
    call go; one rejection is enough to refuse it. The same decision again, by the same person, is
    the same Approval. Raises WrongState, whose
    sentence says what happened since, if this can no longer be decided; BadInput, NotAllowed,
    NotFound.
    """
    if verdict not in Approval.Verdict.values:
        raise BadInput(_("Decide: approve it, or reject it."), field="verdict")
    reason = _text(reason, REASON_LIMIT, "reason")
    with transaction.atomic(durable=True):
        run, call = lock_call(call_id)
        decider = _decider(by, run, call)
        was = call.state
        if earlier := _same_decision(call, decider, verdict, digest):
            return earlier
        _must_be_open(run, call)
        _must_be_as_shown(call, digest)
        approval = Approval(
            call=call,
            verdict=verdict,
            digest=digest,
            args=call.args,
            summary=call.summary,
            reason=reason,
            decided_by=decider,
            decided_at=clock().now,
        )
        sets = add(approval)
        if verdict == Approval.Verdict.APPROVED:
            consent.approve(run, call, by=decider, digest=digest, sets=sets)
        else:
            consent.reject(run, call, by=decider, reason=reason, sets=sets)
    if call.state != was:
        pausepoints.reach(run.pk, f"call:{call.number}:{call.state}")
    return approval


def answer_doubt(call_id: str, *, by: Person, answer: str, evidence: str = "") -> None:
    """Say what became of a call in doubt: one of doubt.ANSWERS. Raises BadInput, WrongState,
    NotAllowed, NotFound.
    """
    evidence = _text(evidence, EVIDENCE_LIMIT, "evidence")
    _must_decide(by, call_id)
    doubt.answer(call_id, by=by, answer=answer, evidence=evidence)


def look_up_again(call_id: str, *, by: Person) -> None:
    """Have the outside system asked once more, now. Raises WrongState if the call is not in
    doubt or cannot be looked up; NotAllowed, NotFound.
    """
    call = _must_decide(by, call_id)
    registered = registry.get(call.tool)
    if registered is None or not registered.has_lookup:
        raise WrongState(_("This cannot be looked up. Only a person can say what happened."))
    doubt.ask_again(call_id)
    doorbell.ring_task("agentruns.tasks.look_up", call_id)


def _must_decide(user: Person, call_id: str) -> ToolCall:
    call = ToolCall.objects.select_related("run").filter(pk=call_id).first()
    if call is None:
        raise NotFound(call_id=call_id)
    require(user, call.run, allowed=may_decide(user, call.run))
    return call


def _decider(by: Person, run: Run, call: ToolCall) -> User:
    """The person, if their word counts for this call. Raises NotAllowed, NotFound."""
    group = effective(call.tool).approver_group
    allowed = may_approve(by, run, group)
    if not allowed and group is not None and may_see(by, run):
        name = Group.objects.values_list("name", flat=True).get(pk=group)
        sentence = _("Only members of the group “%(group)s” decide this.") % {"group": name}
        raise NotAllowed(sentence, run_id=run.pk)
    return require(by, run, allowed=allowed)


def _same_decision(call: ToolCall, user: User, verdict: str, digest: str) -> Approval | None:
    """A second click, or a request sent again: what this person decided last, if it is this."""
    last = Approval.objects.filter(call=call, decided_by=user).first()
    return last if last and (last.verdict, last.digest) == (verdict, digest) else None


def _must_be_open(run: Run, call: ToolCall) -> None:
    """Say what happened since the page was drawn. What remains is for consent to refuse."""
    if call.state == "awaiting_approval":
        return
    # Of several who have to agree, some may have done so: that alone decided nothing.
    is_undecided = call.reason == "approval_withdrawn" or call.state == "expired"
    decision = Approval.objects.select_related("decided_by").filter(call=call).first()
    if decision is not None and not is_undecided:
        said = {
            Approval.Verdict.APPROVED: _("%(person)s has already approved this."),
            Approval.Verdict.REJECTED: _("%(person)s has already rejected this."),
        }[Approval.Verdict(decision.verdict)]
        name = decision.decided_by.get_full_name() or decision.decided_by.get_username()
        raise WrongState(said % {"person": name}, state=call.state, reason="decided")
    if call.reason == "approval_withdrawn" or run.status in (*STOPPING_RUN, *STOPPED_RUN):
        sentence = _("The run was stopped before this was decided.")
        raise WrongState(sentence, state=call.state, reason="stopped")
    if call.state == "expired":
        sentence = _("The time to decide this ran out before you did.")
        raise WrongState(sentence, state=call.state, reason="expired")


def _must_be_as_shown(call: ToolCall, digest: str) -> None:
    if digest != call.args_digest:
        sentence = _("The call has changed since you saw it. Look at it again.")
        raise WrongState(sentence, state=call.state, reason="changed")


def _text(text: str, limit: int, field: str) -> str:
    """What a person wrote, as the database can keep it. Raises BadInput."""
    text = text.strip()
    if len(text) > limit:
        sentence = _("Please keep it to %(limit)s characters.") % {"limit": limit}
        raise BadInput(sentence, field=field)
    if "\x00" in text:
        raise BadInput(_("There is a character in it that cannot be kept."), field=field)
    return text
