"""The registry: every tool that exists, complete or refused at import."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.utils.translation import gettext as _
from pydantic import BaseModel, ValidationError

from tools.contract import Tier, ToolImplementation
from tools.errors import BadArguments, RegistrationError
from tools.storable import is_storable

# Signs that reorder the text around them: a line that people approve must read as it is.
_REORDERING = (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
VISIBLE = {sign: f"\\u{sign:04x}" for sign in _REORDERING}

T = TypeVar("T", bound=type)

_tools: dict[str, "RegisteredTool"] = {}


@dataclass(frozen=True)
class RegisteredTool:
    """A tool as declared in code. `revision` changes when what a caller relied on changes."""

    name: str
    tier: Tier
    args: type[BaseModel]
    timeout: float
    revision: str
    impl: ToolImplementation

    @property
    def title(self) -> str:
        """What people call it, e.g. “Send mail”."""
        return str(getattr(self.impl, "title", self.name))

    @property
    def explains(self) -> str:
        """One line on what it does, for the page where a person picks an agent."""
        return str(getattr(self.impl, "explains", ""))

    @property
    def has_prepare(self) -> bool:
        return _has(self.impl, "prepare")

    @property
    def has_lookup(self) -> bool:
        return _has(self.impl, "lookup")

    @property
    def has_compensate(self) -> bool:
        return _has(self.impl, "compensate")

    @property
    def undo_note(self) -> str:
        """What undo means here, or what a person can do by hand. Empty if never written."""
        return str(getattr(self.impl, "undo_note", "") or "")

    def json_schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, as a model provider wants it."""
        return self.args.model_json_schema()

    def parse(self, raw: dict[str, Any] | str) -> BaseModel:
        """Validate arguments as the model wrote them (an object, or its JSON text).

        Raises BadArguments, whose reasons name each field that does not fit.
        """
        try:
            if isinstance(raw, str):
                args = self.args.model_validate_json(raw)
            else:
                args = self.args.model_validate(raw)
        except ValidationError as error:
            reasons = [_reason(item["loc"], item["msg"]) for item in error.errors()]
            raise self._do_not_fit(reasons) from error
        # What is not kept as it was written must not be done: consent is to what is kept.
        reasons = [
            _reason((name,), "cannot be kept as it is")
            for name, value in args.model_dump().items()
            if not is_storable(value)
        ]
        if reasons:
            raise self._do_not_fit(reasons)
        return args

    def describe(self, args: BaseModel) -> str:
        """What this call does, in one plain line."""
        return str(self.impl.describe(args)).translate(VISIBLE)

    def _do_not_fit(self, reasons: list[str]) -> BadArguments:
        sentence = _("The arguments do not fit %(tool)s: %(reasons)s") % {
            "tool": self.name,
            "reasons": "; ".join(reasons),
        }
        return BadArguments(sentence, reasons=reasons)


def tool(
    name: str,
    *,
    tier: Tier | None = None,
    args: type[BaseModel] | None = None,
    timeout: float = 10.0,
    revision: int = 1,
) -> Callable[[T], T]:
    """Class decorator that registers one instance of the class under `name`.

    Raises RegistrationError, with a sentence that says what to write, for a tool without a
    tier, without a pydantic model of its arguments, without the undo that its tier promises,
    or with a name already taken.
    """

    def register(cls: T) -> T:
        impl = cls()
        if gaps := _gaps(name, impl, tier, args):
            raise RegistrationError(" ".join(gaps), tool=name)
        assert tier is not None and args is not None  # noqa: PT018  (both are gaps above)
        _tools[name] = RegisteredTool(
            name=name,
            tier=tier,
            args=args,
            timeout=timeout,
            revision=_revision(name, tier, args, revision),
            impl=impl,
        )
        return cls

    return register


def get(name: str) -> RegisteredTool | None:
    """The tool of that name, or None."""
    return _tools.get(name)


def all() -> list[RegisteredTool]:
    """Every registered tool, by name."""
    return [_tools[name] for name in sorted(_tools)]


def unregister(name: str) -> None:
    """Take a tool out again; for suites that register tools of their own."""
    _tools.pop(name, None)


def undo_gaps(name: str, tier: Tier, impl: object) -> list[str]:
    """What is missing for the undo that `tier` promises."""
    if tier in (Tier.REVERSIBLE, Tier.COMPENSABLE) and not _has(impl, "compensate"):
        return [
            f"Tool “{name}” is {tier.value}: write compensate(self, ctx, receipt), "
            "or declare it irreversible."
        ]
    if tier is Tier.IRREVERSIBLE and not getattr(impl, "undo_note", ""):
        return [
            f"Tool “{name}” is irreversible: write undo_note, one sentence on what a person "
            "can do by hand."
        ]
    return []


def _gaps(name: str, impl: object, tier: object, args: object) -> list[str]:
    gaps = []
    if name in _tools:
        taken = type(_tools[name].impl)
        gaps.append(
            f"Tool “{name}” is registered already by {taken.__module__}.{taken.__qualname__}: "
            "choose another name."
        )
    if not isinstance(args, type) or not issubclass(args, BaseModel):
        gaps.append(f"Tool “{name}” has no arguments model: write args=<a pydantic BaseModel>.")
    gaps += [
        f"Tool “{name}” cannot {verb}: write {verb}(self, …)."
        for verb in ("describe", "commit")
        if not _has(impl, verb)
    ]
    if isinstance(tier, Tier):
        gaps += undo_gaps(name, tier, impl)
    else:
        tiers = ", ".join(f"Tier.{item.name}" for item in Tier)
        gaps.append(f"Tool “{name}” has no tier: write tier=… with one of {tiers}.")
    return gaps


def _has(impl: object, verb: str) -> bool:
    return callable(getattr(impl, verb, None))


def _revision(name: str, tier: Tier, args: type[BaseModel], declared: int) -> str:
    text = json.dumps([name, tier.value, args.model_json_schema(), declared], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _reason(loc: tuple[int | str, ...], message: str) -> str:
    field = ".".join(str(part) for part in loc)
    return f"{field}: {message}" if field else message
