"""A new run: what is offered, what is refused, and that two clicks are one run."""

import threading

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from pytest_django.fixtures import Settings

from agentruns.models import Agent, Run
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import field, page, words
from tools import policy
from tools.models import Tool

pytestmark = pytest.mark.django_db(transaction=True)


def form(client: Client, **more: str) -> dict[str, str]:
    """The form as a person would send it."""
    key = field(client.get("/runs/new/"), "key")
    return {"key": key, "agent": "tester", "goal": "Do it."} | more


def test_the_page_says_what_each_agent_may_do(browser: Browser, owner: User, agent: Agent) -> None:
    text = page(browser(owner), "/runs/new/")
    assert "Read a note read-only" in text
    assert "Book can be undone" in text
    assert "Send cannot be undone, asks first" in text


def test_the_page_says_which_tool_may_ask(browser: Browser, owner: User, agent: Agent) -> None:
    agent.tools = ["http.get", "git.open_draft"]
    agent.save()
    policy.sync()
    text = page(browser(owner), "/runs/new/")
    assert "Read from the web read-only, may ask first" in text
    assert "Open a draft change can be undone Pushes" in text, "what would ask is refused"


def test_a_tool_that_is_switched_off_is_listed_as_that(
    browser: Browser, owner: User, agent: Agent
) -> None:
    Tool.objects.filter(name="test.book").update(enabled=False)
    assert "Book switched off" in page(browser(owner), "/runs/new/")


def test_an_agent_that_is_not_listed_is_not_offered(
    browser: Browser, owner: User, agent: Agent
) -> None:
    Agent.objects.update(is_listed=False)
    client = browser(owner)
    assert "no agent to choose from" in page(client, "/runs/new/")
    answer = client.post("/runs/new/", {"key": "k", "agent": "tester", "goal": "Do it."})
    assert answer.status_code == 400


def test_a_goal_starts_a_run_and_leads_to_its_page(
    browser: Browser, owner: User, agent: Agent
) -> None:
    client = browser(owner)
    answer = client.post("/runs/new/", form(client, goal="  Tell the team.  "))
    run = Run.objects.get()
    assert answer["Location"] == f"/runs/{run.pk}/"
    assert (run.owner, run.agent, run.goal) == (owner, agent, "Tell the team.")


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        ("", "Write what the agent should do."),
        ("  \n ", "Write what the agent should do."),
        ("x" * 100_000, "The goal has 100000 characters; at most 20000 can be used."),
        ("a\x00b", "The goal has a character that cannot be stored."),
    ],
)
def test_a_goal_that_cannot_be_used_is_kept_and_explained(
    browser: Browser, owner: User, agent: Agent, goal: str, reason: str
) -> None:
    client = browser(owner)
    answer = client.post("/runs/new/", form(client, goal=goal))
    assert answer.status_code == 400
    assert reason in words(answer.content)
    assert goal.replace("\x00", "") in answer.content.decode().replace("\x00", "")
    assert not Run.objects.exists()


@pytest.mark.parametrize("agent_slug", ["", "nobody", "a\x00b"])
def test_an_agent_that_is_not_there_is_explained_and_the_goal_kept(
    browser: Browser, owner: User, agent: Agent, agent_slug: str
) -> None:
    client = browser(owner)
    answer = client.post("/runs/new/", form(client, agent=agent_slug, goal="Tell the team."))
    assert answer.status_code == 400
    assert "Tell the team." in answer.content.decode()
    assert not Run.objects.exists()


def test_an_example_fills_the_form_and_starts_nothing(
    browser: Browser, owner: User, agent: Agent
) -> None:
    Agent.objects.update(example_goal="Sum up the week.")
    client = browser(owner)
    answer = client.post("/runs/new/", form(client, example="tester", goal=""))
    assert ">Sum up the week.</textarea>" in answer.content.decode()
    assert not Run.objects.exists()


def test_the_same_page_sent_twice_is_one_run(browser: Browser, owner: User, agent: Agent) -> None:
    client = browser(owner)
    typed = form(client)
    first, second = (client.post("/runs/new/", typed)["Location"] for _time in range(2))
    assert first == second
    assert Run.objects.count() == 1


def test_two_clicks_at_once_are_one_run(browser: Browser, owner: User, agent: Agent) -> None:
    typed = form(browser(owner))
    clients = [browser(owner) for _n in range(4)]
    together, places = threading.Barrier(len(clients)), []

    def click(client: Client) -> None:
        together.wait()
        places.append(client.post("/runs/new/", typed)["Location"])
        connection.close()

    threads = [threading.Thread(target=click, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(places) == 4
    assert len(set(places)) == 1
    assert Run.objects.count() == 1


def test_going_back_and_writing_something_else_is_another_run(
    browser: Browser, owner: User, agent: Agent
) -> None:
    client = browser(owner)
    typed = form(client)
    client.post("/runs/new/", typed)
    client.post("/runs/new/", typed | {"goal": "Do something else."})
    assert Run.objects.count() == 2


def test_the_key_of_somebody_else_means_nothing(
    browser: Browser, owner: User, outsider: User, agent: Agent
) -> None:
    typed = form(browser(owner))
    browser(owner).post("/runs/new/", typed)
    browser(outsider).post("/runs/new/", typed)
    assert set(Run.objects.values_list("owner__username", flat=True)) == {"owner", "outsider"}


def test_who_has_too_many_runs_keeps_what_they_typed(
    browser: Browser, owner: User, agent: Agent, settings: Settings
) -> None:
    settings.RUNS_PER_PERSON = 1
    client = browser(owner)
    client.post("/runs/new/", form(client))
    answer = client.post("/runs/new/", form(client, goal="Something long that I typed."))
    assert answer.status_code == 429
    assert "1 of your runs have not ended yet, and that is the limit." in words(answer.content)
    assert "Something long that I typed." in answer.content.decode()
    assert Run.objects.count() == 1
