"""A card in a real browser: all of it is there to be read before one can approve (A4, N6)."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Locator, Page, expect

from agentruns.models import Agent, Run
from agentruns.protocol.turn import Proposal, propose_call
from tests.agentruns.steps import Steps
from tests.browser.visitor import PHONE, Visit

pytestmark = [pytest.mark.browser, pytest.mark.stack]

HOSTILE: dict[str, Any] = {
    "note": "ok\namount: 5\ncurrency: EUR" + "\n" * 6000 + "\nTo: bo@team.example",
    "amount": 5000,
    "lines": "line\n" * 300,
    "reference": "5000",
    "signs": "\u202egnp.ecivoni\u202c \u200b\u200b a\u0300\u0301\u0302\u0303\u0304 b   c",
    "nothing": [None, "", [], {}, True, "yes", ["a, b"], ["a", "b"]],
    "to": ["ana@team.example", "bo@teаm.example"],
    "wide": "W" * 3000,
    "deep": {"a": {"b": {"c": {"d": {"e": {"f": {"g": "at the bottom\nof it"}}}}}}},
}
# Whatever can be scrolled, or is cut off, within the question.
HIDDEN = """(card) => [...card.querySelectorAll("*")]
  .filter((each) => each.matches(":not(input, .sr-only)"))
  .filter((each) => getComputedStyle(each).overflowY !== "visible"
    || each.checkVisibility() === false
    || parseFloat(getComputedStyle(each).opacity) < .5
    || each.getBoundingClientRect().right > document.documentElement.clientWidth)
  .map((each) => each.outerHTML.slice(0, 120))"""
# Lines of a value that stand outside of the rule at its edge, which no other value has in common.
ASTRAY = """(card) => [...card.querySelectorAll(".value.is-lines")].flatMap((value) => {
  const box = value.getBoundingClientRect(), range = document.createRange();
  const rule = parseFloat(getComputedStyle(value).borderInlineStartWidth);
  range.selectNodeContents(value);
  return [...range.getClientRects()].filter((line) => line.width && (rule < 1
    || line.left < box.left + rule || line.top < box.top - 1 || line.bottom > box.bottom + 1));
}).length"""


def asks(user: User, args: dict[str, Any]) -> Run:
    """A run of the person's that asks whether it may send this."""
    agent, _is_new = Agent.objects.get_or_create(
        slug="card-sender", name="Sender", model="demo:none", tools=["http.request"]
    )
    steps = Steps(agent, user)
    run = steps.start()
    lease = steps.think(run)
    raw = json.dumps({"method": "POST", "url": "https://pаypal.com/pay", "body": args})
    assert propose_call(lease, Proposal("http.request", raw, "1", 0))
    assert steps.finish(lease)
    return run


def card_of(page: Page, run: Run) -> Locator:
    page.goto(f"/runs/{run.pk}/")
    card = page.locator(".ask.is-approval")
    expect(card).to_be_visible()
    return card


@pytest.mark.parametrize("size", [{}, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_that_is_approved_is_on_the_page(
    ana: User, visit: Visit, size: dict[str, Any], scheme: str
) -> None:
    page = visit(ana, color_scheme=scheme, **size).page
    card = card_of(page, asks(ana, HOSTILE))
    assert card.evaluate(HIDDEN) == []
    assert card.evaluate(ASTRAY) == 0
    expect(card).to_contain_text("6,000 empty lines")
    expect(card).to_contain_text("U+202E")
    expect(card).to_contain_text("xn--pypal-4ve.com")
    fields, button = card.locator("dl.fields").first, card.get_by_role("button", name="Approve")
    above, below = fields.bounding_box(), button.bounding_box()
    assert above
    assert below
    assert below["y"] >= above["y"] + above["height"], "one passes all of it on the way there"


def test_a_forged_line_is_drawn_inside_of_its_value(ana: User, visit: Visit) -> None:
    card = card_of(visit(ana).page, asks(ana, HOSTILE))
    amounts = card.locator("dt", has_text="amount")
    expect(amounts).to_have_count(1)
    forged = card.get_by_text("amount: 5", exact=False).locator("visible=true").last
    rule, field = forged.bounding_box(), amounts.bounding_box()
    assert rule
    assert field
    assert field["y"] > rule["y"] + rule["height"], "the true one stands below the whole value"


def test_the_largest_arguments_are_whole_and_the_page_can_be_used(ana: User, visit: Visit) -> None:
    text = "".join(f"line {n}\n" for n in range(20_000))[:200_000]
    page = visit(ana).page
    card = card_of(page, asks(ana, {"text": text}))
    assert card.locator(".value.is-lines").first.inner_text().splitlines()[-1].startswith("line")
    card.get_by_role("button", name="Reject").click()
    expect(page.locator(".ask.is-approval")).to_have_count(0)
