from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from tools import registry, verbs
from tools.contract import Context, Draft, Receipt, Tier, Unit
from tools.errors import RegistrationError


class Args(BaseModel):
    """Nothing to say."""

    size: int = 1


class Bare:
    def describe(self, args: Args) -> str:
        return "Something"

    def commit(self, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
        return Receipt()


def refused(*, name: str = "test.bare", cls: type = Bare, **declared: Any) -> str:
    with pytest.raises(RegistrationError) as caught:
        registry.tool(name, **declared)(cls)
    assert name != "test.bare" or name not in [item.name for item in registry.all()]
    return str(caught.value)


def test_a_tool_without_a_tier_does_not_register() -> None:
    assert "write tier=" in refused(args=Args)


def test_a_tool_without_an_arguments_model_does_not_register() -> None:
    assert "write args=" in refused(tier=Tier.READ_ONLY)
    assert "write args=" in refused(tier=Tier.READ_ONLY, args=dict)


@pytest.mark.parametrize("tier", [Tier.REVERSIBLE, Tier.COMPENSABLE])
def test_a_tier_that_promises_undo_needs_a_compensation(tier: Tier) -> None:
    assert "write compensate" in refused(tier=tier, args=Args)


def test_an_irreversible_tool_says_what_a_person_can_do() -> None:
    assert "write undo_note" in refused(tier=Tier.IRREVERSIBLE, args=Args)


def test_a_name_is_taken_once() -> None:
    message = refused(name="mail.search", tier=Tier.READ_ONLY, args=Args)
    assert "choose another name" in message


def test_a_tool_that_cannot_act_does_not_register() -> None:
    class Silent:
        pass

    message = refused(cls=Silent, tier=Tier.READ_ONLY, args=Args)
    assert "write describe" in message
    assert "write commit" in message


def test_the_revision_follows_tier_schema_and_declared_revision() -> None:
    class Wider(Args):
        other: str = ""

    seen = set()
    for tier, args, revision in [
        (Tier.READ_ONLY, Args, 1),
        (Tier.READ_ONLY, Args, 2),
        (Tier.READ_ONLY, Wider, 1),
    ]:
        for _again in range(2):
            registry.tool("test.bare", tier=tier, args=args, revision=revision)(Bare)
            found = registry.get("test.bare")
            assert found is not None
            seen.add(found.revision)
            registry.unregister("test.bare")
    assert len(seen) == 3


def test_bad_arguments_name_each_field_that_does_not_fit() -> None:
    from_text = registry.get("email.send")
    assert from_text is not None
    with pytest.raises(registry.BadArguments) as caught:
        from_text.parse('{"to": ["nobody"], "subject": "Hi"}')
    assert [reason.partition(":")[0] for reason in caught.value.reasons] == ["to.0", "body"]
    assert "email.send" in str(caught.value)


@pytest.mark.parametrize("raw", ["", "{", "null", "[]", '{"to": ['])
def test_a_torn_or_wrong_document_is_bad_arguments(raw: str) -> None:
    """Case E14: half-received arguments never become a call."""
    item = registry.get("mail.search")
    assert item is not None
    with pytest.raises(registry.BadArguments):
        item.parse(raw)


class Step(Bare):
    undo_note = "Book it back by hand."

    def unit_key(self, args: Args) -> str:
        return str(args.size)


class Many(Bare):
    undo_note = "Write to each of them."

    def item_keys(self, args: Args) -> list[str]:
        return [str(number % 3) for number in range(args.size)]


def test_a_step_of_a_unit_says_which_unit_a_call_is_of() -> None:
    message = refused(tier=Tier.IRREVERSIBLE, args=Args, unit=Unit("transfer", 1, 2))
    assert "write unit_key" in message


@pytest.mark.parametrize(
    "unit", [Unit("move", 1, 1), Unit("move", 3, 2), Unit("", 1, 2), Unit("a:b", 1, 2)]
)
def test_a_unit_has_steps_that_add_up(unit: Unit) -> None:
    message = refused(cls=Step, tier=Tier.IRREVERSIBLE, args=Args, unit=unit)
    assert "write unit=Unit(" in message


def test_a_read_is_no_step_and_has_no_items() -> None:
    message = refused(cls=Step, tier=Tier.READ_ONLY, args=Args, unit=Unit("transfer", 1, 2))
    assert "write no unit=" in message
    assert "write no item_keys" in refused(cls=Many, tier=Tier.READ_ONLY, args=Args)


def test_a_step_has_one_effect() -> None:
    class Both(Step, Many):
        pass

    unit = Unit("transfer", 1, 2)
    message = refused(cls=Both, tier=Tier.IRREVERSIBLE, args=Args, unit=unit)
    assert "write no item_keys" in message


@pytest.mark.parametrize("unit", [Unit("transfer", 1, 2), Unit("transfer", 2, 3)])
def test_two_tools_do_not_claim_the_same_step(unit: Unit) -> None:
    declared = {"tier": Tier.IRREVERSIBLE, "args": Args}
    registry.tool("test.first", unit=Unit("transfer", 1, 2), **declared)(Step)
    try:
        assert "test.first" in refused(cls=Step, unit=unit, **declared)
    finally:
        registry.unregister("test.first")


def test_a_call_is_of_the_unit_that_its_arguments_name() -> None:
    declared = {"tier": Tier.IRREVERSIBLE, "args": Args}
    registry.tool("test.bare", unit=Unit("transfer", 1, 2), uninterruptible=True, **declared)(Step)
    found = registry.get("test.bare")
    registry.unregister("test.bare")
    assert found is not None
    assert found.uninterruptible
    assert found.unit_of_call(Args(size=7)) == ("transfer:7", 1, 2)
    name, *_place = found.unit_of_call(Args(size=10**300)) or ("",)
    assert len(name) == len("transfer:") + 64, "what no column would hold is told by its digest"


def test_items_can_be_told_apart() -> None:
    registry.tool("test.bare", tier=Tier.IRREVERSIBLE, args=Args)(Many)
    found = registry.get("test.bare")
    registry.unregister("test.bare")
    assert found is not None
    assert found.item_keys(Args(size=3)) == ["0", "1", "2"]
    with pytest.raises(registry.BadArguments) as caught:
        found.item_keys(Args(size=4))
    assert caught.value.reasons == ["0: is there twice"]


@pytest.mark.parametrize("timeout", [0, -1, 271, 3600])
def test_a_time_limit_has_to_be_one(timeout: float) -> None:
    said = refused(tier=Tier.READ_ONLY, args=Args, timeout=timeout)
    assert "write timeout=<seconds>, more than 0 and at most 270" in said


def with_verb(verb: str, method: Any) -> type:
    """A tool that is complete but for this."""
    return type("Odd", (Bare,), {"undo_note": "None.", verb: method})


async def _awaits(self: Any, *given: Any) -> None: ...


async def _awaits_and_yields(self: Any, *given: Any) -> Any:
    yield 1


def _yields(self: Any, *given: Any) -> Any:
    yield 1


class _Awaiting:
    """What a decorator may leave in the place of a method."""

    async def __call__(self, *given: Any) -> None: ...


@pytest.mark.parametrize("verb", verbs.VERBS)
@pytest.mark.parametrize("method", [_awaits, _awaits_and_yields, _Awaiting(), partial(_awaits, 1)])
def test_a_verb_that_nobody_would_await_does_not_register(verb: str, method: Any) -> None:
    cls = with_verb(verb, method)
    said = refused(cls=cls, tier=Tier.IRREVERSIBLE, args=Args)
    assert f"{verb} is async" in said
    assert f"write def {verb}(self" in said
    assert "test.bare" not in [item.name for item in registry.all()]


@pytest.mark.parametrize("verb", [verb for verb in verbs.VERBS if verb != "drafts"])
def test_a_verb_that_yields_does_not_register(verb: str) -> None:
    said = refused(cls=with_verb(verb, _yields), tier=Tier.IRREVERSIBLE, args=Args)
    assert f"{verb} yields" in said


@pytest.mark.parametrize("verb", verbs.VERBS)
@pytest.mark.parametrize(
    "method",
    [
        staticmethod(lambda self, a, b, c, d: None),
        classmethod(lambda cls, *, named: None),
        lambda self, a, b, c, d: None,
        "no method",
    ],
)
def test_a_verb_that_cannot_be_called_as_it_will_be_does_not_register(
    verb: str, method: Any
) -> None:
    said = refused(cls=with_verb(verb, method), tier=Tier.IRREVERSIBLE, args=Args)
    assert f"write def {verb}(self" in said


def test_a_static_verb_of_the_right_shape_registers() -> None:
    methods = {"commit": staticmethod(lambda ctx, args, draft: Receipt()), "drafts": _yields}
    cls = type("Fine", (Bare,), {"undo_note": "None.", **methods})
    registry.tool("test.bare", tier=Tier.IRREVERSIBLE, args=Args)(cls)
    assert "test.bare" in [item.name for item in registry.all()]
    registry.unregister("test.bare")
