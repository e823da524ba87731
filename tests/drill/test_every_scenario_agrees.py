"""`make drill-all`: whatever the demo plays, ledger and world agree, stopped or not."""

import json
import subprocess
from typing import Any

import pytest

from agentruns.services.programs import BASE_DIR, MANAGE
from agentruns.services.stack import Stack
from tests.drill.drills import Drills
from tools.world.scenarios import load_all

HELD = "--scenario batch --stop-at call:1:prepared"
AT_17 = "--scenario batch --stop-at call:1:item:17"
DRILLS = [HELD, AT_17]

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def results(stack: Stack) -> list[dict[str, Any]]:
    done = subprocess.run(
        [*MANAGE, "drill_all", "--json"],
        env=stack.env,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"
    return list(json.loads(done.stdout))


@pytest.mark.evidence
@pytest.mark.timeout(300)
def test_each_of_them_is_played_and_agrees(results: list[dict[str, Any]]) -> None:
    assert {each["scenario"] for each in results} == set(load_all())
    assert [each for each in results if each["why"]] == []


@pytest.mark.evidence
@pytest.mark.timeout(300)
def test_whatever_can_be_undone_was(results: list[dict[str, Any]]) -> None:
    [mixed] = [r for r in results if (r["scenario"], r["stop_at"]) == ("mixed", "")]
    # A mail that has left, and a search, stay.
    assert (mixed["groups"]["done"], mixed["undone"]) == (5, 3)


def test_mails_that_were_stopped_while_they_were_held_never_left(drills: Drills) -> None:
    report = drills[HELD].report
    [mails] = report["groups"]["never_started"]
    assert (report["status"], mails["state"]) == ("stopped_clean", "voided")
    assert drills[HELD].effects() == {}
    assert report["breaches"] == []


def test_a_batch_that_is_stopped_at_its_17th_mail_sends_no_more_than_one_after_it(
    drills: Drills,
) -> None:
    report = drills[AT_17].report
    assert report["status"] == "stopped_clean"
    assert drills[AT_17].effects()["email.send_later"] in (17, 18)
    assert [call["tool"] for call in report["groups"]["done"]] == ["email.send_later"]
