import json
from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.agentruns.steps import Steps
from tools import registry
from tools.checks import every_tool_is_complete
from tools.models import Tool
from tools.registry import RegisteredTool

pytestmark = pytest.mark.django_db


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> RegisteredTool:
    """tickets.create, after a refactoring took its compensation, its note and its deadline."""
    whole = registry.get("tickets.create")
    assert whole is not None
    kind = type(whole.impl)
    for verb in ("compensate", "undo_note"):
        monkeypatch.delattr(kind, verb)
    monkeypatch.setitem(registry._tools, whole.name, replace(whole, timeout=0))
    return whole


def audit(*args: str) -> str:
    out = StringIO()
    call_command("audit_tools", *args, stdout=out)
    return out.getvalue()


def test_the_built_in_tools_have_no_gap() -> None:
    assert every_tool_is_complete() == []
    lines = audit().splitlines()
    head = "tool tier enabled dispatch consent look-up may act late undo"
    assert lines[0].split()[: len(head.split())] == head.split()
    assert [line.split()[0] for line in lines[1:]] == [item.name for item in registry.all()]


def test_the_audit_as_json_says_how_each_tool_is_handled() -> None:
    rows = {row["tool"]: row for row in json.loads(audit("--json"))}
    assert rows["email.send"] == {
        "tool": "email.send",
        "tier": "irreversible",
        "enabled": "yes",
        "dispatch": "speculative",
        "consent": "a person, always",
        "undo": "cannot be undone",
        "look-up": "a person answers",
        "may act late": "for 120 s",
        "limit": "10 s",
        "gate to send": "not measured",
        "gaps": [],
    }
    assert rows["mail.search"]["dispatch"] == "eager"
    late = {name: rows[name]["may act late"] for name in ("mail.search", "files.write")}
    assert late == {"mail.search": "never", "files.write": "never"}
    assert rows["http.request"]["may act late"] == "for 900 s", "who says nothing may act late"
    assert rows["mail.search"]["consent"] == "none"
    assert rows["http.get"]["consent"] == "a person, by its arguments"


@pytest.mark.django_db(transaction=True)
def test_it_says_what_an_admin_has_set_and_how_fast_the_tool_sends(steps: Steps) -> None:
    Tool.objects.filter(name="test.post").update(
        tier="irreversible", approvals_needed=2, time_limit=7, dispatch="speculative"
    )
    _run, (call,) = steps.running("test.book")
    assert steps.act(call).state == "landed"
    rows = {row["tool"]: row for row in json.loads(audit("--json"))}
    assert rows["test.book"]["gate to send"].endswith("(1)")
    post = rows["test.post"]
    assert (post["tier"], post["consent"]) == ("irreversible", "2 people, always")
    assert (post["undo"], post["limit"]) == ("cannot be undone", "7 s")


def test_each_gap_is_an_error_of_the_system_check(broken: RegisteredTool) -> None:
    errors = every_tool_is_complete()
    assert {error.obj for error in errors} == {broken.name}
    text = " ".join(error.msg for error in errors)
    for missing in ("write compensate", "write undo_note", "write timeout"):
        assert missing in text


@pytest.mark.usefixtures("broken")
def test_a_gap_fails_the_audit() -> None:
    with pytest.raises(CommandError, match="write compensate") as caught:
        audit("--json")
    assert caught.value.returncode == 1
