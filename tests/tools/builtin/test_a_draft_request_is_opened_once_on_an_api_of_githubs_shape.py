"""git.open_draft: the API takes no idempotency key, so a line in the request's text tells ours."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pytest_django.fixtures import Settings

from tests.tools.builtin.answering import answering
from tests.tools.builtin.calls import act, arguments, lookup, prepare, tool, undo
from tests.tools.conftest import NewContext, RunningWorld
from tools.contract import Changed, Draft, NotLanded, Receipt, UndoReceipt, Unknown
from tools.gitcli import git

NAME = "git.open_draft"


def pulls(world: RunningWorld, branch: str) -> list[dict[str, Any]]:
    query = {"state": "all", "head": f"demo:{branch}"}
    answer = httpx2.get(f"{world.http}/git/repos/demo/team/pulls", params=query)
    found: list[dict[str, Any]] = answer.raise_for_status().json()
    return found


def test_the_request_is_a_draft_that_says_whose_it_is_where_nobody_sees_it(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = act(NAME, ctx)
    (pull,) = pulls(world, receipt.data["branch"])
    assert (pull["draft"], pull["state"], pull["title"]) == (True, "open", "Q3 numbers")
    assert (pull["base"]["ref"], pull["head"]["sha"]) == ("release/q3", receipt.data["commit"])
    assert pull["body"] == f"Fill in July\n\n<!-- Request-Id: {ctx.request_id} -->"
    assert receipt.data["draft"] == pull["number"]
    assert receipt.data["url"] == pull["html_url"]


def test_an_attempt_after_a_lost_answer_takes_the_request_that_is_there(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx, args = new_context(), arguments(NAME)
    world.fault("git", "drop_after")
    with pytest.raises(httpx2.HTTPError):
        tool(NAME).impl.commit(ctx, args, prepare(NAME, ctx, args))
    receipt = tool(NAME).impl.commit(ctx, args, None)
    (pull,) = pulls(world, receipt.data["branch"])
    assert receipt.data["draft"] == pull["number"]
    assert len(world.effects(ctx)) == 1


def test_lookup_finds_the_request_whose_branch_was_deleted_since(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = act(NAME, ctx)
    repo = str(world.folder / "repo.git")
    gone = f":refs/heads/{receipt.data['branch']}"
    git("push", "--quiet", repo, gone, cwd=Path(repo), timeout=20)
    found = lookup(NAME, ctx)
    assert isinstance(found, Receipt)
    assert found.data == receipt.data


def test_undo_leaves_alone_what_was_merged(world: RunningWorld, new_context: NewContext) -> None:
    ctx = new_context()
    receipt = act(NAME, ctx)
    url = f"{world.http}/git/repos/demo/team/pulls/{receipt.data['draft']}/merge"
    httpx2.put(url, json={}).raise_for_status()
    assert undo(NAME, ctx, receipt) == Changed(
        "Somebody merged the draft request “Q3 numbers” since."
    )
    (effect,) = world.effects(ctx)
    assert effect.undone_at is None


def test_undo_says_what_became_of_the_request_and_of_the_branch(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = act(NAME, ctx)
    result = undo(NAME, ctx, receipt)
    assert isinstance(result, UndoReceipt)
    assert result.note == (
        "The draft request “Q3 numbers” was closed; it stays in the list. "
        f"The branch {receipt.data['branch']} was deleted. "
        "Whoever fetched it meanwhile still has it."
    )
    (pull,) = pulls(world, receipt.data["branch"])
    assert pull["state"] == "closed"


def test_what_is_only_prepared_is_listed_and_cleared_by_the_key_alone(
    world: RunningWorld, new_context: NewContext, settings: Settings
) -> None:
    impl: Any = tool(NAME).impl
    assert list(impl.drafts()) == []
    ctx = new_context()
    prepare(NAME, ctx, arguments(NAME))
    assert list(impl.drafts()) == [ctx.request_id]
    impl.void(ctx, Draft())
    impl.void(ctx, Draft())
    assert list(impl.drafts()) == []


def test_the_token_goes_along_and_the_version_of_the_api(
    world: RunningWorld, new_context: NewContext, settings: Settings
) -> None:
    settings.GIT_API_TOKEN = "tok_1"
    with answering(200, {}, "[]") as server:
        settings.GIT_API_URL = f"{server.url}/repos/own/team"
        prepare(NAME, new_context(), arguments(NAME, branch="q3"))
    (asked,) = server.requests  # an empty page is the last one
    assert asked.path.startswith("/repos/own/team/pulls?state=all")
    assert "head=own%3Aq3" in asked.path
    assert asked.headers["Authorization"] == "Bearer tok_1"
    assert asked.headers["X-GitHub-Api-Version"] == "2022-11-28"


@pytest.mark.parametrize(
    ("numbers", "decides"),
    [([3, 2, 1], True), ([1, 2, 3], False)],
    ids=["newest first", "oldest first"],
)
def test_a_list_without_pages_decides_only_if_the_newest_come_first(
    numbers: list[int],
    decides: bool,
    world: RunningWorld,
    new_context: NewContext,
    settings: Settings,
) -> None:
    """N17: it answers the same to each question; there may be more."""
    others = [{"number": number, "body": "Mine"} for number in numbers]
    with answering(200, {}, json.dumps(others)) as server:
        settings.GIT_API_URL = f"{server.url}/repos/own/team"
        found = lookup(NAME, new_context())
    assert isinstance(found, NotLanded if decides else Unknown)
