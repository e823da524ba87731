"""kill -9 of an executor during `git push`: it ends, and nothing is said too early (L2)."""

import json
import os
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from pytest_django.fixtures import Settings

from agentruns.models import Agent, ToolCall
from agentruns.protocol.doubt import ask_again
from agentruns.protocol.execute import look_up_call
from agentruns.protocol.turn import Proposal, propose_call
from tests.agentruns.steps import Steps, anew, now, pass_time
from tests.tools.conftest import RunningWorld, _world_process, world
from tests.tools.killing import executor, killed_with_all_it_started, number_in, slow_remote
from tools import policy
from tools.gitcli import git

__all__ = ["_world_process", "world"]

EXECUTE = """
import sys
import django
django.setup()
from agentruns.protocol.execute import execute_call
execute_call(sys.argv[1], epoch=int(sys.argv[2]))
"""
DRAFT = {
    "branch": "late",
    "base": "main",
    "title": "Numbers",
    "files": {"q3.csv": "July\n"},
    "message": "July",
}


@pytest.fixture
def steps(transactional_db: None, owner: User) -> Steps:
    policy.sync()
    tools = ["git.open_draft"]
    return Steps(Agent.objects.create(slug="a", name="A", model="demo:none", tools=tools), owner)


def asked(steps: Steps) -> ToolCall:
    lease = steps.think(steps.start())
    call = propose_call(lease, Proposal("git.open_draft", json.dumps(DRAFT), "provider_1", 0))
    assert call is not None
    steps.finish(lease)
    return anew(call)


def environment(settings: Settings) -> dict[str, str]:
    """As this process has it: its database, its world."""
    url = os.environ["DATABASE_URL"].replace("/agentruns?", f"/{connection.settings_dict['NAME']}?")
    return os.environ | {
        "DATABASE_URL": url,
        "DATA_DIR": str(settings.DATA_DIR),
        "GIT_API_URL": settings.GIT_API_URL,
        "GIT_REMOTE": settings.GIT_REMOTE,
    }


def test_the_push_does_not_land_and_the_call_is_looked_up(
    steps: Steps, world: RunningWorld, settings: Settings, tmp_path: Path
) -> None:
    remote = slow_remote(tmp_path)
    settings.GIT_REMOTE = str(remote)
    call = asked(steps)
    with executor(EXECUTE, call.pk, str(call.epoch), env=environment(settings)) as process:
        number_in(tmp_path / "begun")
        assert anew(call).state == "in_flight"
        steps.stop(call.run)
        killed_with_all_it_started(process, least=4)
    (tmp_path / "go").touch()
    assert now(call.run).status == "draining", "nobody knows yet what became of it"

    pass_time(call)
    steps.sweep()
    assert (anew(call).state, anew(call).reason) == ("in_doubt", "no_report")
    assert now(call.run).status == "stopped_dirty"
    ask_again(call.pk)
    look_up_call(call.pk)
    assert anew(call).state == "in_doubt", "that nothing is there is not believed at once"

    assert steps.look_up(anew(call)).state == "failed"
    assert now(call.run).status == "stopped_clean"
    assert git("branch", "--list", "late", cwd=remote, timeout=20) == ""
