from typing import Any

import pytest
from django.contrib import admin as site
from django.contrib.admin import ModelAdmin
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from unfold.admin import ModelAdmin as UnfoldAdmin

from agentruns.models import (
    Agent,
    Checkpoint,
    Grant,
    LedgerEvent,
    Output,
    Run,
    StopRequest,
    ToolCall,
)
from compensation import saga
from compensation.models import Compensation
from review.models import Approval
from review.services import decide
from tests.acting import call, mail, proposed, stopped, ticket
from tests.tools.conftest import RunningWorld, _world_process, world

__all__ = ["_world_process", "world"]

pytestmark = pytest.mark.django_db(transaction=True)

READ_ONLY = [
    Run,
    ToolCall,
    LedgerEvent,
    Output,
    Grant,
    StopRequest,
    Checkpoint,
    Approval,
    Compensation,
]


@pytest.fixture
def row_of(owner: User, admin: User, world: RunningWorld) -> dict[type[Model], Model]:
    """A row of each kind: a stopped run with a rejected mail, and an undo that was given up."""
    run = proposed(owner, mail())
    decide(call(run).pk, by=owner, verdict="rejected", digest=call(run).args_digest)
    run = stopped(owner, ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    User.objects.filter(pk=owner.pk).update(is_active=False)
    saga.run_next(run.pk)
    User.objects.filter(pk=owner.pk).update(is_active=True)
    return {model: model.objects.first() for model in (*READ_ONLY, Agent)}


@pytest.fixture
def browser(admin: User, client: Client) -> Client:
    client.force_login(admin)
    return client


def page(kind: type[Model], what: str, *args: object) -> str:
    return reverse(f"admin:{kind._meta.app_label}_{kind._meta.model_name}_{what}", args=args)


@pytest.mark.parametrize("kind", READ_ONLY)
def test_rows_are_listed_found_and_shown_but_not_changed(
    kind: type[Model], row_of: dict[type[Model], Model], browser: Client
) -> None:
    row = row_of[kind]
    assert browser.get(page(kind, "changelist")).status_code == 200
    assert browser.get(page(kind, "changelist"), {"q": "run_"}).status_code == 200
    assert browser.get(page(kind, "change", row.pk)).status_code == 200
    assert browser.post(page(kind, "change", row.pk), {"goal": "Mine"}).status_code == 403
    assert browser.post(page(kind, "delete", row.pk), {"post": "yes"}).status_code == 403
    assert browser.get(page(kind, "add")).status_code == 403
    assert kind.objects.filter(pk=row.pk).exists()


def test_every_filter_works(row_of: dict[type[Model], Model], browser: Client) -> None:
    for kind in READ_ONLY:
        for wanted in site.site.get_model_admin(kind).list_filter:
            answer = browser.get(page(kind, "changelist"), {parameter(wanted): "1"})
            assert answer.status_code in (200, 302), (kind, wanted)


def parameter(wanted: Any) -> str:
    """What a filter is called in the address."""
    if isinstance(wanted, str):
        return wanted
    if isinstance(wanted, tuple):
        name, kind = wanted
        return f"{name}__isempty" if kind is site.EmptyFieldListFilter else f"{name}__id__exact"
    return str(wanted.parameter_name)


@pytest.mark.usefixtures("db")
def test_every_table_has_the_same_look() -> None:
    for kind, model_admin in site.site._registry.items():
        assert isinstance(model_admin, UnfoldAdmin), kind
        assert isinstance(model_admin, ModelAdmin), kind


def test_an_agent_is_edited_with_tools_from_the_registry_only(
    row_of: dict[type[Model], Model], browser: Client
) -> None:
    agent = row_of[Agent]
    fields = {
        "name": "Renamed",
        "model": "demo:inbox",
        "tools": ["mail.search", "email.send"],
        "on_limit": "stop",
        "auto_undo": "offer",
    }
    wrong = browser.post(page(Agent, "change", agent.pk), fields | {"tools": ["rm.everything"]})
    assert wrong.status_code == 200
    assert "rm.everything" in wrong.content.decode()
    assert browser.post(page(Agent, "change", agent.pk), fields).status_code == 302
    changed = Agent.objects.get(pk=agent.pk)
    assert (changed.name, changed.tools) == ("Renamed", ["mail.search", "email.send"])
    assert (changed.token_limit, changed.checkpoint_before) == (None, [])


def test_an_agent_gets_limits_and_checkpoints(
    row_of: dict[type[Model], Model], browser: Client
) -> None:
    agent = row_of[Agent]
    fields = {
        "name": "Careful",
        "model": "demo:inbox",
        "token_limit": "5000",
        "cost_limit": "0.25",
        "on_limit": "wait",
        "auto_undo": "reversible",
        "checkpoint_before": ["tool_call"],
    }
    address = page(Agent, "change", agent.pk)
    for wrong in ({"token_limit": "0"}, {"cost_limit": "0"}, {"checkpoint_before": ["lunch"]}):
        assert browser.post(address, fields | wrong).status_code == 200, wrong
    assert browser.post(address, fields).status_code == 302
    changed = Agent.objects.get(pk=agent.pk)
    assert (changed.token_limit, str(changed.cost_limit)) == (5000, "0.250")
    assert (changed.on_limit, changed.checkpoint_before) == ("wait", ["tool_call"])
    assert changed.auto_undo == "reversible"


def test_what_was_given_up_is_asked_for_again_by_the_admin(
    row_of: dict[type[Model], Model], browser: Client, admin: User
) -> None:
    step = row_of[Compensation]
    assert step.state == "failed"
    form = {"action": "try_again", "_selected_action": [step.pk]}
    said = browser.post(page(Compensation, "changelist"), form, follow=True).content.decode()
    assert "“Ticket “Printer”” will be tried again." in said
    again = Compensation.objects.get(state="planned")
    assert (again.call_id, again.request.requested_by) == (step.call_id, admin)
    said = browser.post(page(Compensation, "changelist"), form, follow=True).content.decode()
    assert Compensation.objects.count() == 2
    saga.run_next(again.call.run_id)
    form["_selected_action"] = [again.pk]
    said = browser.post(page(Compensation, "changelist"), form, follow=True).content.decode()
    assert "This has not been given up." in said


def test_the_wider_content_policy_is_for_the_admin_alone(browser: Client) -> None:
    inside = browser.get(reverse("admin:index")).headers["Content-Security-Policy"]
    outside = browser.get(reverse("healthz")).headers["Content-Security-Policy"]
    assert "'unsafe-eval'" in inside
    assert "frame-ancestors 'none'" in inside
    assert "unsafe" not in outside
