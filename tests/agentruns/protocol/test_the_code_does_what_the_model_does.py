"""The model that `make check-model` explores is one of this protocol: what it says after each step,
the database says too, when the function that the step stands for has been called.
"""

import pytest
from pytest_django.fixtures import Settings

from agentruns.protocol import outcome
from tests.agentruns.steps import Steps
from tests.model.deeds import DEEDS, told
from tests.model.explore import Breach
from tests.model.replay import Player, in_database, in_model
from tests.model.scopes import (
    ANSWERS,
    EFFECT,
    EFFECTS,
    PAUSE,
    READ_AND_EFFECT,
    RESUME,
    UNIT,
    Scope,
)
from tests.model.walks import situations, walks

# The tests' unit has three steps.
UNIT_OF_THREE = UNIT._replace(tools=(EFFECT,) * 3)
TOOLS = {
    EFFECTS: ("test.book", "test.draft"),
    READ_AND_EFFECT: ("test.note", "test.book"),
    PAUSE: ("test.note", "test.draft"),
    RESUME: ("test.book", "test.send"),
    UNIT_OF_THREE: ("test.reserve", "test.pay", "test.ship"),
    ANSWERS: ("test.book",),
}
WALKS = 4


@pytest.mark.parametrize("scope", TOOLS, ids=lambda scope: scope.name)
def test_the_code_does_what_the_model_does(
    steps: Steps, settings: Settings, monkeypatch: pytest.MonkeyPatch, scope: Scope
) -> None:
    settings.TURN_LIMIT = scope.turns
    monkeypatch.setattr(outcome, "ATTEMPT_LIMIT", scope.attempts)
    for way in walks(scope, WALKS):
        player = Player(steps, TOOLS[scope], is_unit=scope.is_unit)
        for number, step in enumerate(way, 1):
            player.play(step)
            assert in_database(player.run) == in_model(step.after), told(
                Breach("The model", "the database differs after the last step", way[:number])
            )


def test_the_walks_meet_every_deed() -> None:
    met = {deed for scope in TOOLS for way in walks(scope, WALKS) for deed, *_ in situations(way)}
    assert met == set(DEEDS)
