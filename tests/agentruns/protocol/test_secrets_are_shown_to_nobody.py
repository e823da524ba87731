"""R26: a secret goes to the outside, and nowhere else; it is forgotten when its call has ended."""

import json

import pytest
from django.core.serializers import serialize
from django.db import DatabaseError, IntegrityError, transaction

from agentruns.models import LedgerEvent, Output, Run, ToolCall
from agentruns.planner.history import messages_of
from agentruns.protocol.turn import Proposal, propose_call
from review.models import Approval
from review.services import decide
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, now, pass_time
from tests.forging import rewrite
from tools.models import Tool
from tools.secrets import MASK

SECRET = "hunter2-and-more"
OTHER = "another-one"


def signed(steps: Steps) -> tuple[Run, ToolCall]:
    run = steps.start()
    lease = steps.think(run)
    others = {"at home": [OTHER]}
    call = steps.propose(lease, "test.sign", token=SECRET, others=others)
    steps.finish(lease)
    return now(run), anew(call)


def everything_kept() -> str:
    rows = [*ToolCall.objects.all(), *LedgerEvent.objects.all(), *Approval.objects.all()]
    return str(serialize("json", [*rows, *Output.objects.all(), *Run.objects.all()]))


@pytest.mark.breaks_ledger
def test_the_outside_gets_it_and_no_row_has_it_after_that(steps: Steps, outside: Outside) -> None:
    run, call = signed(steps)
    assert call.secrets == [[["token"], SECRET], [["others", "at home", 0], OTHER]]
    assert steps.act(call).state == "landed"
    assert outside.effects == [("test.sign", SECRET)]
    outside.effects.clear()
    # The receipt of this tool is its secret; all else must not have it.
    rewrite(ToolCall.objects.filter(pk=call.pk), receipt={})
    kept = everything_kept()
    assert SECRET not in kept
    assert OTHER not in kept
    assert SECRET not in str(messages_of(run))


def test_what_people_see_of_it_is_stars(steps: Steps, outside: Outside) -> None:
    _run, call = signed(steps)
    assert call.args["token"] == MASK
    assert call.args["others"] == {"at home": [MASK]}
    assert call.summary == f"sign “it” with {MASK}"
    event = LedgerEvent.objects.get(kind="call.proposed")
    assert event.data["args"] == call.args


def test_an_approval_is_bound_to_it_and_does_not_show_it(steps: Steps, outside: Outside) -> None:
    Tool.objects.filter(name="test.sign").update(approvals_needed=1)
    _run, call = signed(steps)
    approval = decide(call.pk, by=steps.owner, verdict="approved", digest=call.args_digest)
    assert SECRET not in json.dumps(approval.args)
    assert steps.act(call).state == "landed"
    assert outside.effects == [("test.sign", SECRET)]


def test_two_secrets_have_two_digests(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    calls = [steps.propose(lease, "test.sign", token=token) for token in ("a", "b")]
    assert calls[0].args == calls[1].args
    assert calls[0].args_digest != calls[1].args_digest


def test_it_is_still_there_for_another_attempt(steps: Steps, outside: Outside) -> None:
    outside.answers["test.sign"] = ["busy"]
    _run, call = signed(steps)
    assert steps.act(call).state == "approved"
    pass_time(call)
    assert steps.act(call).state == "landed"
    assert outside.effects == [("test.sign", SECRET)]


def test_stop_forgets_it(steps: Steps) -> None:
    run, call = signed(steps)
    steps.stop(run)
    assert anew(call).secrets is None


def test_the_database_does_not_let_an_ended_call_keep_it(steps: Steps) -> None:
    run, call = signed(steps)
    steps.stop(run)
    kept = ToolCall.objects.filter(pk=call.pk)
    with pytest.raises(DatabaseError, match="Cannot update"), transaction.atomic():
        kept.update(secrets=[[["token"], SECRET]])
    with pytest.raises(IntegrityError, match="secrets_are_forgotten"):
        rewrite(kept, secrets=[[["token"], SECRET]])


def test_a_model_that_repeats_the_stars_is_told_so(steps: Steps) -> None:
    lease = steps.think(steps.start())
    call = steps.propose(lease, "test.sign", token=MASK)
    assert (call.state, call.reason) == ("failed", "bad_arguments")
    assert "write the secret itself" in call.detail


def test_arguments_that_do_not_fit_are_not_kept_as_written(steps: Steps) -> None:
    lease = steps.think(steps.start())
    raw = json.dumps({"token": SECRET})
    call = propose_call(lease, Proposal("test.sign", raw, "provider_1", offset=0))
    assert call is not None
    assert call.reason == "bad_arguments"
    assert SECRET not in everything_kept()
