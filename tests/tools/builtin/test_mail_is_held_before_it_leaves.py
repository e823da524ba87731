"""email.send_later: a mail to each person, and nothing at all until its time has come."""

from pathlib import Path

import pytest

from tests.tools.conftest import NewContext, RunningWorld
from tools import registry
from tools.builtin.mail_later import LONGEST_HOLD, EmailSendLater, SendLater
from tools.contract import Context, ItemsInMemory, PauseSignal, Receipt
from tools.errors import BadArguments, NoEffect
from tools.journal import Journal
from tools.world.journal import MAIL

PEOPLE = ["ana@team.example", "bo@team.example", "mei@team.example"]


class OneOnly(ItemsInMemory):
    """Says after the first item that no further one may follow."""

    def land(self, key: str, receipt: dict[str, object]) -> None:
        super().land(key, receipt)
        raise PauseSignal("the run is held")


def parse(**changes: object) -> SendLater:
    found = registry.get("email.send_later")
    assert found is not None
    args = found.parse({"to": PEOPLE, "subject": "Lunch", "body": "At twelve."} | changes)
    assert isinstance(args, SendLater)
    return args


def send(ctx: Context, args: SendLater) -> Receipt:
    tool = EmailSendLater()
    return tool.commit(ctx, args, tool.prepare(ctx, args))


def recipients(world: RunningWorld, ctx: Context) -> list[tuple[str, str]]:
    found = [(each.data["to"], each.request_id) for each in world.effects(ctx)]
    return [(to[0], key.removeprefix(ctx.request_id)) for to, key in found]


def test_it_says_for_how_long_it_is_held(new_context: NewContext) -> None:
    draft = EmailSendLater().prepare(new_context(), parse(hold_seconds=90))
    assert draft.hold == 90
    assert EmailSendLater().describe(parse()) == (
        "Mail “Lunch” to ana@team.example, bo@team.example, mei@team.example, held for 60 seconds"
    )


def test_each_person_gets_a_mail_of_their_own(world: RunningWorld, new_context: NewContext) -> None:
    ctx = new_context()
    receipt = send(ctx, parse())
    assert recipients(world, ctx) == [(each, f"/{n}") for n, each in enumerate(PEOPLE, 1)]
    assert {each.tool for each in world.effects(ctx)} == {"email.send_later"}
    assert receipt.data["items"] == ctx.items.done()
    assert receipt.response == f"Mail “Lunch” was sent to {', '.join(PEOPLE)}."


def test_the_names_of_the_others_are_not_in_it(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    send(ctx, parse())
    ids = {entry["message_id"] for entry in Journal(Path(world.folder) / MAIL).entries()}
    assert {kept["message_id"] for kept in ctx.items.done().values()} <= ids
    draft = EmailSendLater().prepare(ctx, parse())
    assert "bo@team.example" not in draft.data["mails"]["ana@team.example"]


def test_it_goes_on_where_it_was_interrupted(world: RunningWorld, new_context: NewContext) -> None:
    ctx = new_context()
    first = Context(ctx.request_id, "run_1", "call_1", "Ana", 10.0, items=OneOnly())
    with pytest.raises(PauseSignal):
        send(first, parse())
    assert len(world.effects(ctx)) == 1

    again = Context(
        ctx.request_id, "run_1", "call_1", "Ana", 10.0, items=ItemsInMemory(first.items.done())
    )
    send(again, parse())
    assert [to for to, _key in recipients(world, ctx)] == PEOPLE


def test_a_refused_address_is_known_to_have_got_nothing(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    world.fault("smtp", "refuse")
    with pytest.raises(NoEffect):
        send(ctx, parse())
    assert world.effects(ctx) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hold_seconds": 0}, "hold_seconds"),
        ({"hold_seconds": LONGEST_HOLD + 1}, "hold_seconds"),
        ({"to": []}, "at least 1"),
        ({"to": ["ana@team.example", "ana@team.example"]}, "is there twice"),
    ],
)
def test_what_cannot_be_held_or_sent_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(BadArguments, match=reason):
        parse(**changes)
