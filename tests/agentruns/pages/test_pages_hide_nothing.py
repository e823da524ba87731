"""Signs that cannot be seen are spelt out wherever a page shows what others wrote (A4)."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agentruns.models import Agent, LedgerEvent, Run, ToolCall
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_failed, record_landed
from agentruns.protocol.start import start_run
from agentruns.protocol.turn import Proposal, propose_call
from review.models import Approval
from review.services import decide
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import words
from tests.agentruns.steps import Steps
from tools.contract import Receipt
from tools.texts import is_unseen

pytestmark = pytest.mark.django_db(transaction=True)

HIDDEN = "a\u202egnp.exe\u200b\u2066\u00ad\u3164"
SPELT = r"a\u202egnp.exe\u200b\u2066\u00ad\u3164"
BOXED = "a U+202E gnp.exe U+200B U+2066 U+00AD U+3164"


@pytest.fixture
def run(steps: Steps, agent: Agent, owner: User) -> Run:
    """Hidden signs in all that somebody may write, in calls that landed, failed, wait, are none."""
    run = start_run(owner=owner, agent=agent, goal=f"Do {HIDDEN} " + "now " * 60, ring=False)
    lease = steps.think(run)
    assert propose_call(lease, Proposal(f"none.{HIDDEN}", f'{{"{HIDDEN}": 1', HIDDEN, 0))
    calls = [steps.propose(lease, name, f"{n} {HIDDEN}") for n, name in enumerate(NAMES)]
    assert steps.finish(lease)
    for number, call in enumerate(calls[:2]):
        claim = steps.claim(call)
        assert pass_gate(claim)
        if number:
            record_failed(claim, "refused", f"No {HIDDEN}")
        else:
            record_landed(claim, Receipt({HIDDEN: [HIDDEN]}, HIDDEN))
    decide(calls[2].pk, by=owner, verdict="rejected", digest=calls[2].args_digest, reason=HIDDEN)
    return run


NAMES = ("test.book", "test.book", "test.send", "test.send")


def hidden_in(client: Client, path: str) -> set[str]:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return {sign for sign in set(answer.content.decode()) if is_unseen(sign)} - {"\n", "\t", "\r"}


def test_the_run_and_the_list_of_runs_show_all_signs(
    run: Run, steps: Steps, browser: Browser, owner: User
) -> None:
    client = browser(owner)
    assert hidden_in(client, f"/runs/{run.pk}/") == set()
    said = words(client.get(f"/runs/{run.pk}/").content)
    assert f"Do {SPELT} now" in said
    assert f"Do {BOXED} now" in said, "the whole goal"
    assert f"send “3 {SPELT}”" in said
    assert f"What 3 {BOXED} Count 1" in said
    assert f"No {SPELT}" in said

    steps.stop(run, reason=HIDDEN)
    assert hidden_in(client, f"/runs/{run.pk}/") == set()
    said = words(client.get(f"/runs/{run.pk}/").content)
    assert f"{BOXED} 1. {BOXED}".replace("1. ", "") in said, "the receipt"
    assert f"none.{SPELT}" in said
    assert hidden_in(client, "/") == set()
    assert f"Do {SPELT} now" in words(client.get("/").content)


@pytest.mark.parametrize("model", [Run, ToolCall, LedgerEvent, Approval])
def test_so_do_the_pages_of_an_admin(
    run: Run, browser: Browser, admin: User, model: Callable[..., object]
) -> None:
    meta = model._meta  # type: ignore[attr-defined]
    client, path = browser(admin), f"/admin/{meta.app_label}/{meta.model_name}/"
    assert hidden_in(client, path) == set()
    for row in model.objects.all():  # type: ignore[attr-defined]
        assert hidden_in(client, f"{path}{row.pk}/change/") == set()
