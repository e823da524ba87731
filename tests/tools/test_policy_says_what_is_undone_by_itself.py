"""What a tool did may be undone after a Stop without being asked for: its row says so."""

import pytest

from tools import policy
from tools.models import Tool

NAME = "calendar.create_event"


@pytest.mark.django_db
@pytest.mark.parametrize("choice", Tool.AutoUndo)
def test_the_row_decides(choice: str) -> None:
    policy.sync()
    Tool.objects.filter(name=NAME).update(auto_undo=choice)
    assert policy.auto_undo([NAME]) == {NAME: choice}


@pytest.mark.django_db
def test_a_new_row_leaves_it_to_the_agent() -> None:
    policy.sync()
    assert policy.auto_undo([NAME]) == {NAME: "agent"}


@pytest.mark.django_db
def test_a_tool_without_a_row_undoes_nothing_by_itself() -> None:
    Tool.objects.all().delete()
    assert policy.auto_undo([NAME]) == {NAME: "never"}
