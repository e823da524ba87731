"""Runs played by hand: the verbs that the workers call, and the real tools, without workers."""

import json
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User

from agentruns.models import Agent, Run, ToolCall
from agentruns.protocol.execute import execute_call
from agentruns.protocol.lease import Fragment, take_lease
from agentruns.protocol.start import start_run
from agentruns.protocol.stop import request_stop
from agentruns.protocol.turn import Proposal, finish_turn, propose_call
from tools import policy, registry

Wanted = tuple[str, dict[str, Any]]


def ticket(title: str = "Printer") -> Wanted:
    return "tickets.create", {"title": title, "body": "It is broken again."}


def message(text: str = "The review is on Tuesday.") -> Wanted:
    return "chat.post_message", {"channel": "#team", "text": text}


def meeting(title: str = "Q3 review") -> Wanted:
    when = {"start": "2031-03-04T10:00:00+01:00", "end": "2031-03-04T11:00:00+01:00"}
    return "calendar.create_event", {"title": title, **when}


def mail(subject: str = "Q3 review on Tuesday") -> Wanted:
    return "email.send", {"to": ["ana@team.example"], "subject": subject, "body": "At ten."}


def search(query: str = "review") -> Wanted:
    return "mail.search", {"query": query}


def proposed(owner: User, *wanted: Wanted) -> Run:
    """A run whose model asked for these calls in its first turn, and ended its answer."""
    policy.sync()
    agent, _ = Agent.objects.get_or_create(
        slug="tester",
        defaults={
            "name": "Tester",
            "model": "demo:tester",
            "tools": [item.name for item in registry.all()],
        },
    )
    run = start_run(owner=owner, agent=agent, goal="Do these things.", ring=False)
    lease = take_lease(run.pk, epoch=run.epoch)
    assert lease is not None
    for tool, args in wanted:
        assert propose_call(lease, Proposal(tool, json.dumps(args), uuid4().hex, 0))
    assert finish_turn(lease, Fragment("Doing it."), "stop")
    return fresh(run)


def acted(owner: User, *wanted: Wanted) -> Run:
    """The same, with every call carried out that needs nobody's consent."""
    run = proposed(owner, *wanted)
    act(run)
    return fresh(run)


def stopped(owner: User, *wanted: Wanted) -> Run:
    """The same, stopped afterwards."""
    run = acted(owner, *wanted)
    request_stop(run.pk, by=owner)
    return fresh(run)


def act(run: Run) -> None:
    """Carry out, in order, whatever may go."""
    for call in calls(run):
        execute_call(call.pk, epoch=call.epoch)


def calls(run: Run) -> list[ToolCall]:
    return list(ToolCall.objects.filter(run=run).order_by("number"))


def call(run: Run, number: int = 1) -> ToolCall:
    return ToolCall.objects.get(run=run, number=number)


def fresh(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def events(run: Run, kind: str) -> list[dict[str, Any]]:
    """What the ledger says of this kind, in order."""
    return [event.data for event in run.events.filter(kind=kind)]
