import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pytest_django.fixtures import Settings

from agentruns.drill.faults import SERVICES
from tests.tools.builtin.calls import REPEATABLE, WITH_LOOKUP, act, lookup
from tests.tools.conftest import ROOT, NewContext, RunningWorld, point_at, running_world
from tools.contract import Receipt
from tools.gitcli import git
from tools.world.record import effects


def test_a_second_start_keeps_what_happened_before(
    tmp_path: Path, settings: Settings, new_context: NewContext
) -> None:
    ctx = new_context()
    with running_world(tmp_path / "w") as first:
        point_at(settings, first, tmp_path)
        for name in REPEATABLE:
            act(name, ctx)
        before = effects(first.folder)
        mails = sorted((first.folder / "maildir" / "new").iterdir())
    assert first.process.returncode == 0, "SIGTERM ends it gracefully"
    with running_world(tmp_path / "w") as second:
        point_at(settings, second, tmp_path)
        assert effects(second.folder) == before
        for name in set(WITH_LOOKUP) & set(REPEATABLE):
            assert isinstance(lookup(name, ctx), Receipt)
        assert sorted((second.folder / "maildir" / "new").iterdir()) == mails


def test_a_port_in_use_is_named_and_nothing_is_left_running(
    world: RunningWorld, tmp_path: Path
) -> None:
    for setting, port in (
        ("WORLD_HTTP_PORT", world.http_port),
        ("WORLD_SMTP_PORT", world.smtp_port),
        ("WORLD_CALDAV_PORT", world.caldav_port),
    ):
        ended = _start({"WORLD_DIR": str(tmp_path), setting: str(port)})
        assert ended.returncode == 1
        assert f"Port {port} is in use. Set {setting}" in ended.stderr
        assert "Traceback" not in ended.stderr


def test_two_worlds_do_not_share_one_record(world: RunningWorld) -> None:
    ended = _start({"WORLD_DIR": str(world.folder)})
    assert ended.returncode == 1
    assert "Another demo world runs in" in ended.stderr


def test_the_repository_has_its_branches(world: RunningWorld) -> None:
    shown = git("branch", "--format=%(refname:short)", cwd=world.folder / "repo.git", timeout=10)
    assert {"main", "release/q3", "release/q4"} <= set(shown.split())


def test_the_model_provider_is_mounted(world: RunningWorld) -> None:
    assert httpx2.get(f"{world.http}/v1/models").status_code == 200


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({}, "service must be one of chat, tickets, smtp, caldav, git, hooks"),
        ({"service": "chat", "mode": "explode"}, "mode must be one of delay"),
        ({"service": "chat", "mode": "delay", "seconds": -1}, "seconds must be"),
        ({"service": "chat", "mode": "delay", "times": 0}, "times must be"),
        ({"service": "chat", "mode": "delay", "often": 3}, "unknown: often"),
        ({"service": "git", "mode": "busy"}, "git cannot be busy"),
        ([], "a fault is an object"),
    ],
)
def test_a_fault_that_is_none_is_refused_with_what_is_allowed(
    world: RunningWorld, fault: Any, said: str
) -> None:
    answer = httpx2.post(f"{world.http}/_world/faults", json=fault)
    assert answer.status_code == 422
    assert said in answer.json()["error"]


def test_a_page_in_a_browser_cannot_set_faults(world: RunningWorld) -> None:
    body = json.dumps({"service": "chat", "mode": "refuse"})
    answer = httpx2.post(
        f"{world.http}/_world/faults", content=body, headers={"Content-Type": "text/plain"}
    )
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "path",
    [
        "/chat/chat.postMessage",
        "/tickets/tickets",
        "/git/repos/demo/team/pulls",
        "/hooks/deliveries",
        "/payments/authorizations",
    ],
)
def test_a_body_that_is_no_object_is_refused(world: RunningWorld, path: str) -> None:
    for content in (b"", b"[]", b"{", b"\xff"):
        assert httpx2.post(f"{world.http}{path}", content=content).status_code == 400


def _start(changes: dict[str, str]) -> subprocess.CompletedProcess[str]:
    ports = dict.fromkeys(("WORLD_HTTP_PORT", "WORLD_SMTP_PORT", "WORLD_CALDAV_PORT"), "0")
    return subprocess.run(
        [sys.executable, "manage.py", "world"],
        cwd=ROOT,
        env=os.environ | ports | changes,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("service", "method", "path"),
    [
        ("chat", "POST", "/chat/chat.postMessage"),
        ("tickets", "POST", "/tickets/tickets"),
        ("authorizations", "POST", "/payments/authorizations"),
        ("payments", "POST", "/payments/captures/C-1/refund"),
        ("caldav", "PUT", "/demo/team/some.ics"),
    ],
)
def test_a_busy_server_says_when_to_ask_again_and_does_nothing(
    world: RunningWorld, service: str, method: str, path: str
) -> None:
    world.fault(service, "busy", seconds=1.5)
    before = effects(world.folder)
    base = f"http://127.0.0.1:{world.caldav_port}" if service == "caldav" else world.http
    answer = httpx2.request(method, base + path, json={})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert effects(world.folder) == before


@pytest.mark.parametrize("name", REPEATABLE)
def test_a_fault_with_a_key_hits_the_effect_that_carries_it_and_no_other(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    mine, other = new_context(), new_context()
    service, key = SERVICES[name], mine.request_id
    if service == "smtp":
        key = "mine@"
    body = {"service": service, "mode": "drop_after", "key": key}
    httpx2.post(f"{world.http}/_world/faults", json=body).raise_for_status()
    act(name, other)
    with pytest.raises(Exception):  # noqa: B017  (each tool has its own)
        act(name, mine, **({"to": ["mine@team.example"]} if service == "smtp" else {}))
    assert len(world.effects(mine)) == len(world.effects(other)) == 1


def test_files_that_are_elsewhere_are_a_part_of_its_record(
    tmp_path: Path, settings: Settings, new_context: NewContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "office"
    elsewhere.mkdir()
    monkeypatch.setenv("FILES_DIR", str(elsewhere))
    with running_world(tmp_path / "w") as world:
        settings.FILES_DIR = elsewhere
        ctx = new_context()
        act("files.write", ctx)
        assert [each.tool for each in world.effects(ctx)] == ["files.write"]
        assert [each.name for each in elsewhere.iterdir() if each.name != ".agentruns"] == ["notes"]
