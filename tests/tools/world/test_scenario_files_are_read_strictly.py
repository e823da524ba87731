"""A scenario file with a mistake is refused by name and line; those that ship are sound."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tools import registry
from tools.errors import BadArguments
from tools.world.provider_script import RUN_MARK
from tools.world.scenarios import (
    Call,
    Cut,
    Pause,
    Results,
    Say,
    ScenarioError,
    dated,
    load,
    load_all,
    load_path,
)

GOOD = """\
name: story
title: A story
goal: Do something
agent:
  name: Helper
  description: Helps.
  tools: [mail.search]
pace: 20
turns:
  - - say: Hello.
    - call:
        tool: mail.search
        args: {query: Q3, limit: 5}
    - pause: 0.5
  - - results: true
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "story.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_file_becomes_a_scenario(tmp_path: Path) -> None:
    scenario = load_path(written(tmp_path, GOOD))

    assert scenario.name == "story"
    assert scenario.agent.tools == ("mail.search",)
    assert scenario.pace == 20.0
    assert not scenario.listed
    call = Call("mail.search", {"query": "Q3", "limit": 5})
    assert scenario.turns == ((Say("Hello."), call, Pause(0.5)), (Results(new=False),))


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("say: Hello.", "sayy: Hello.", 10, "unknown step “sayy”; known: say, call, pause, "),
        ("say: Hello.", "say: ''", 10, "this must be text, and not empty"),
        ("say: Hello.", "say: 12", 10, "this must be text, and not empty"),
        ("say: Hello.", "say: Hello.\n      pause: 1", 10, "a step has exactly one key"),
        ("tool: mail.search\n", "tol: mail.search\n", 12, "unknown key “tol”; known: tool, args"),
        ("{query: Q3, limit: 5}", "[Q3]", 13, "this must be a map of keys and values"),
        ("query: Q3", "query: Q3, query: Q4", 13, "“query” stands here twice"),
        ("query: Q3", "query: 2026-11-29", 13, "put it in quotes"),
        ("query: Q3", "query: '@next-tuseday 10:00'", 13, "write it like “@next-tuesday 10:00”"),
        ("pause: 0.5", "pause: -1", 14, "this must be a number, at least 0"),
        ("pause: 0.5", "pause: .nan", 14, "this must be a number, at least 0"),
        ("pause: 0.5", "cut: middle", 14, "unknown value “middle”; known: connection, eof, "),
        ("pause: 0.5", "pause: 1\n    - cut: eof", 15, "a cut must follow the call that it breaks"),
        ("pause: 0.5", "cut: eof\n    - pause: 1", 14, "nothing can follow a cut or a finish"),
        ("results: true", "results: yes please", 15, "“results” takes true or new"),
        ("pace: 20", "pace: fast", 8, "this must be a number, at least 1"),
        ("pace: 20", "listed: maybe", 8, "this must be true or false"),
        ("title: A story", "titel: A story", 2, "unknown key “titel”; known: name, title, "),
        ("title: A story\n", "", 1, "“title” is missing"),
        ("name: story", "name: other", 1, "the name is “other”, but the file is called"),
        ("tools: [mail.search]", "tools: []", 7, "this must be a list with at least one entry"),
        ("tools: [mail.search]", "tools: [mail.search", 8, "not YAML: "),
    ],
)
def test_a_mistake_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, problem: str
) -> None:
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new, 1))

    with pytest.raises(ScenarioError) as caught:
        load_path(path)

    assert str(caught.value).startswith(f"story.yaml, line {line}: ")
    assert problem in str(caught.value)
    assert caught.value.data == {"file": "story.yaml", "line": line}


@pytest.mark.parametrize("text", ["", "# nothing\n", "just words\n", "- a list\n", "a: [\x00]\n"])
def test_a_file_that_is_no_scenario_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ScenarioError, match=r"^story\.yaml, line 1: "):
        load_path(written(tmp_path, text))


def test_an_unknown_scenario_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ScenarioError, match=r"no scenario “\.\./inbox”; known: .*inbox, .*ticket"):
        load("../inbox")


def test_those_that_ship_are_sound_and_some_are_for_people() -> None:
    scenarios = load_all()

    assert {name for name, scenario in scenarios.items() if scenario.listed} == {
        "batch",
        "inbox",
        "migration",
        "mixed",
        "payment",
        "report",
        "ticket",
    }
    assert load("inbox") == scenarios["inbox"]
    for scenario in scenarios.values():
        called = {step.tool for turn in scenario.turns for step in turn if isinstance(step, Call)}
        unknown = {"mail.archive"} if scenario.name == "failures" else set()
        assert called - unknown == set(scenario.agent.tools)


@pytest.mark.django_db
def test_all_arguments_fit_the_tools_except_where_failing_is_the_point() -> None:
    now = datetime.now().astimezone()
    misfits = []
    for scenario in load_all().values():
        calls = [step for turn in scenario.turns for step in turn if isinstance(step, Call)]
        for call in calls:
            registered = registry.get(call.tool)
            try:
                assert registered is not None
                registered.parse(json.dumps(dated(call.args, now)).replace(RUN_MARK, "1a2b"))
            except (AssertionError, BadArguments):
                misfits.append((scenario.name, call.tool))

    assert misfits == [("failures", "mail.archive"), ("failures", "calendar.create_event")]


def test_each_cut_scenario_breaks_a_call_behind_a_whole_buffered_one() -> None:
    for kind in ("connection", "eof", "length", "malformed"):
        (turn,) = load(f"cut-{kind}").turns
        assert turn[-1] == Cut(kind)
        assert [step.tool for step in turn if isinstance(step, Call)] == [
            "mail.search",
            "chat.post_message",
            "email.send",
        ]


@pytest.mark.parametrize("days", range(7))
def test_next_tuesday_is_the_coming_one_and_never_today(days: int) -> None:
    now = datetime(2026, 11, 29, 15, 0).astimezone() + timedelta(days=days)

    value = dated({"when": ["@next-tuesday 10:00", "as is"]}, now)["when"]

    moment = datetime.fromisoformat(value[0])
    assert moment.utcoffset() is not None
    assert (moment.strftime("%A"), moment.hour, moment.minute) == ("Tuesday", 10, 0)
    assert 1 <= (moment.date() - now.date()).days <= 7
    assert value[1] == "as is"
