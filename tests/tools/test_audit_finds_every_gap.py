import json
from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tools import registry
from tools.checks import every_tool_is_complete
from tools.registry import RegisteredTool


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
    assert lines[0].split() == ["tool", "tier", "dispatch", "consent", "undo", "look-up"]
    assert [line.split()[0] for line in lines[1:]] == [item.name for item in registry.all()]


def test_the_audit_as_json_says_how_each_tool_is_handled() -> None:
    rows = {row["tool"]: row for row in json.loads(audit("--json"))}
    assert rows["email.send"] == {
        "tool": "email.send",
        "tier": "irreversible",
        "dispatch": "speculative",
        "consent": "a person, always",
        "undo": "cannot be undone",
        "look-up": "a person answers",
        "gaps": [],
    }
    assert rows["mail.search"]["dispatch"] == "eager"


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
