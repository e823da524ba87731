"""I12, broken by hand."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agentruns.models import LedgerEvent, Run, ToolCall
from agentruns.protocol.ledger import person
from review.models import Approval
from tests.agentruns.steps import Steps
from tests.agentruns.verify.breaking import at_number, record, sql, whats
from tests.forging import rewrite
from tools.models import Tool

pytestmark = pytest.mark.breaks_ledger


def decided(run: Run, **other: object) -> None:
    """The decision as review keeps it, but for what is other about it."""
    call = at_number(run, 1)
    shown = {"digest": call.args_digest, "args": call.args, "verdict": "approved"} | other
    Approval.objects.create(call=call, decided_by=run.owner, decided_at=timezone.now(), **shown)


def test_a_gate_that_opened_without_an_approval(approved: Run) -> None:
    sql("DELETE FROM agentruns_ledgerevent WHERE kind = 'call.approved'")

    assert any("passed the gate on 0 approvals" in what for what in whats("I12"))


def test_what_cannot_be_undone_needs_consent_though_nobody_asked(run: Run) -> None:
    record(run, "call.commit_allowed", at_number(run, 1), epoch=1, tier="irreversible")

    assert any("passed the gate on 0 approvals" in what for what in whats("I12"))


def test_one_approval_for_two_gates(approved: Run) -> None:
    record(approved, "call.commit_allowed", at_number(approved, 1), epoch=1, tier="irreversible")

    assert any("passed the gate on 0 approvals" in what for what in whats("I12"))


def test_consent_that_was_not_given_back_is_not_there_twice(approved: Run) -> None:
    for _ in range(2):
        record(approved, "call.postponed", at_number(approved, 1))
    record(approved, "call.commit_allowed", at_number(approved, 1), epoch=1, tier="irreversible")
    assert whats("I12") == []

    record(approved, "call.commit_allowed", at_number(approved, 1), epoch=1, tier="irreversible")

    assert any("passed the gate on 0 approvals" in what for what in whats("I12"))


def test_two_approvals_for_one_gate(approved: Run) -> None:
    event = LedgerEvent.objects.get(kind="call.approved")
    call = at_number(approved, 1)
    second = record(approved, "call.approved", call, digest=call.args_digest)
    # After the first, and before the gate.
    sql("UPDATE agentruns_ledgerevent SET seq = seq + 1000 WHERE seq > %s", event.seq)
    sql("UPDATE agentruns_ledgerevent SET seq = %s WHERE id = %s", event.seq + 1, second.pk)

    assert any("passed the gate on 2 approvals" in what for what in whats("I12"))


def test_an_approval_of_other_arguments(approved: Run) -> None:
    sql(
        "UPDATE agentruns_ledgerevent SET data = %s WHERE kind = 'call.approved'",
        '{"digest": "of something else"}',
    )

    assert any("other arguments than those that were approved" in what for what in whats("I12"))


def test_an_approval_that_had_run_out(approved: Run) -> None:
    asked = "kind = 'call.approval_requested'"
    sql(
        "UPDATE agentruns_ledgerevent SET data = data || "
        f"""jsonb_build_object('expires_at', at::text) WHERE {asked}"""
    )
    sql(
        "UPDATE agentruns_ledgerevent SET sets = jsonb_set(sets, '{call,gate_passed_at}', "
        "to_jsonb((sets #>> '{call,gate_passed_at}')::bigint + 3600000000)) "
        "WHERE kind = 'call.commit_allowed'"
    )

    assert any("after its approval had run out" in what for what in whats("I12"))


def test_a_row_that_says_that_its_consent_was_not_used(approved: Run) -> None:
    rewrite(ToolCall.objects.all(), consent_used_at=None)

    assert "whether its consent was used" in whats("I12")[0]


def test_arguments_that_are_not_those_that_were_proposed(approved: Run) -> None:
    rewrite(ToolCall.objects.all(), args={"what": "something else", "count": 1})

    assert "are not those that were proposed" in whats("I12")[0]


def test_a_digest_that_is_not_that_of_the_arguments(approved: Run) -> None:
    forged = '{"what": "something else", "count": 1}'
    sql("UPDATE agentruns_toolcall SET args = %s", forged)
    sql(
        "UPDATE agentruns_ledgerevent SET data = jsonb_set(data, '{args}', %s) "
        "WHERE kind = 'call.proposed'",
        forged,
    )

    assert "its digest is not that of its arguments" in whats("I12")[0]


def test_a_decision_that_the_ledger_does_not_have(steps: Steps) -> None:
    run, _calls = steps.running("test.send")
    decided(run)

    assert "nothing of it is in the ledger" in whats("I12")[0]


@pytest.mark.parametrize("other", [{"digest": "x"}, {"args": {"what": "x"}}], ids=str)
def test_a_decision_on_something_else(approved: Run, other: dict[str, object]) -> None:
    decided(approved)
    assert whats("I12") == []

    decided(approved, **other)

    assert "what was shown is not what the call says" in whats("I12")[0]


@pytest.fixture
def agreed(steps: Steps, reviewer: User) -> Run:
    """A run whose one call was approved by two people, and has landed."""
    Tool.objects.filter(name="test.send").update(approvals_needed=2)
    run, (call,) = steps.running("test.send")
    steps.approve(call)
    steps.approve(call, by=reviewer)
    assert steps.act(call).state == "landed"
    assert whats("I12") == []
    return run


@pytest.mark.usefixtures("agreed")
def test_a_gate_that_opened_with_too_few(steps: Steps) -> None:
    sql("DELETE FROM agentruns_ledgerevent WHERE kind = 'call.approval_given'")

    assert "with the word of 1 people out of 2" in whats("I12")[0]


@pytest.mark.usefixtures("agreed")
def test_one_person_who_agreed_twice(owner: User) -> None:
    actor = "UPDATE agentruns_ledgerevent SET actor = %s WHERE kind = 'call.approved'"
    sql(actor, person(owner))

    assert "with the word of 1 people out of 2" in whats("I12")[0]


@pytest.mark.usefixtures("approved")
def test_a_gate_that_wanted_more() -> None:
    sql(
        "UPDATE agentruns_ledgerevent SET data = data || '{\"approvals\": 2}' "
        "WHERE kind = 'call.commit_allowed'"
    )

    assert "with the word of 1 people out of 2" in whats("I12")[0]


@pytest.mark.usefixtures("approved")
def test_a_row_that_counts_otherwise() -> None:
    rewrite(ToolCall.objects.all(), consent_count=2)

    assert "differ on how many have agreed" in whats("I12")[0]
