"""The registry: every tool of our code and of installed packages, complete or refused at import.

Imported tools are found through it, too, by name (tools/imports/loader.py).
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from django.conf import settings
from django.utils.translation import gettext as _
from pydantic import BaseModel, ValidationError

from tools import texts, verbs
from tools.contract import FollowUp, Tier, ToolImplementation, Unit
from tools.digest import args_digest, digest
from tools.errors import BadArguments, RegistrationError
from tools.secrets import MASK, has_secrets, masked, secrets_of
from tools.storable import is_storable

T = TypeVar("T", bound=type)
_SINGLE = (str, int, float, type(None))  # values without others inside

# What a ledger's column holds of the name of an atomic unit, or of an item.
NAME_LENGTH = texts.LONGEST_NAME
MOST_REASONS, LONGEST_REASON = 20, 300  # why arguments do not fit: how many, characters of each
# What a page can show whole to whoever approves it: characters of JSON, single values in it; and
# characters as a model may write them, each of them escaped.
LARGEST_ARGUMENTS, MOST_VALUES = 256 * 1024, 5_000
LONGEST_RAW = 6 * LARGEST_ARGUMENTS
MOST_SECRETS = 50  # each is looked for in all that comes back
TOO_LARGE = (
    f"more than a person can be shown: write at most {LARGEST_ARGUMENTS} characters in at most "
    f"{MOST_VALUES} values"
)
# Seconds between the longest time that a call may take and the end of the executor's own patience:
# for what is prepared before it, and recorded after it.
TIME_TO_SPARE = 30
# Seconds after which a system that nobody has said anything of has done what it was sent, or never
# will: longer than servers, proxies and queues keep a request whose sender has gone.
UNKNOWN_HORIZON = 15 * 60.0
LONGEST_HORIZON = 7 * 24 * 3600.0

_tools: dict[str, "RegisteredTool"] = {}
# Where else to look for a name that our code does not have (tools/imports/loader.py).
_elsewhere: list[Callable[[str], "RegisteredTool | None"]] = []


@dataclass(frozen=True)
class RegisteredTool:
    """A tool as its code declares it, or its source describes it. `revision` changes when what a
    caller relied on changes.

    `uninterruptible`: once it has begun, even Stop waits for it, until its own deadline. `horizon`:
    for so many seconds after a caller has given up, the outside may still act on what it was sent;
    0 where “it is not there” can be promised at once.
    """

    name: str
    tier: Tier
    args: type[BaseModel]
    timeout: float
    revision: str
    impl: ToolImplementation
    unit: Unit | None = None
    uninterruptible: bool = False
    horizon: float = UNKNOWN_HORIZON

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
    def has_drafts(self) -> bool:
        """Whether `prepare` leaves something outside, which can be found again."""
        return _has(self.impl, "drafts")

    def drafts(self) -> list[str]:
        """The request ids of what `prepare` has left outside; asks the outside system."""
        impl: Any = self.impl
        return list(impl.drafts())

    @cached_property
    def has_secrets(self) -> bool:
        """Whether arguments of it are shown to nobody."""
        return has_secrets(self.json_schema())

    @property
    def asks_by_arguments(self) -> bool:
        """Whether some of its calls need a person's approval for what is in their arguments."""
        return _has(self.impl, "needs_approval")

    def needs_approval(self, raw: dict[str, Any] | str) -> str:
        """Why a person has to agree to a call with these arguments, whatever its tier; "" where
        that decides alone. Of arguments that do not fit, nobody knows: they need one.
        """
        if not self.asks_by_arguments:
            return ""
        impl: Any = self.impl
        try:
            return str(impl.needs_approval(self.parse(raw)))
        except BadArguments as error:
            return str(error)

    @property
    def has_items(self) -> bool:
        """Whether a call has several effects, each with a receipt of its own."""
        return _has(self.impl, "item_keys")

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
            found = error.errors(include_url=False, include_context=False, include_input=False)
            reasons = [_reason(item["loc"], item["msg"]) for item in found]
            raise self._do_not_fit(reasons) from error
        if reasons := _not_as_written(args):
            raise self._do_not_fit(reasons)
        return args

    def take(self, raw: str) -> BaseModel:
        """The same, for what a model has just written. It sees its earlier secrets masked: one
        that it gives as such is no secret. And no more than a person can be shown, whole, before
        they approve it.
        """
        if len(raw) > LONGEST_RAW:
            raise self._do_not_fit([TOO_LARGE])
        args = self.parse(raw)
        if not _can_be_shown(masked(args)):
            raise self._do_not_fit([TOO_LARGE])
        secrets = secrets_of(args)
        if len(secrets) > MOST_SECRETS:
            raise self._do_not_fit([f"more than {MOST_SECRETS} secrets in one call"])
        masks = [path for path, value in secrets if value == MASK]
        if masks:
            raise self._do_not_fit([_reason(tuple(p), "write the secret itself") for p in masks])
        return args

    def describe(self, args: BaseModel) -> str:
        """What this call does, in one plain line that holds no more than its column."""
        return texts.line(str(self.impl.describe(args)), texts.LONGEST["summary"])

    def follow_up(self, args: BaseModel) -> FollowUp | None:
        """What a person may want next, once this call is done and cannot be undone."""
        impl: Any = self.impl
        return impl.follow_up(args) if _has(self.impl, "follow_up") else None

    def effect_digest(self, args: BaseModel) -> str:
        """What two calls have in common that would have the same effect, as far as the tool says;
        else their arguments. SHA-256, hex.
        """
        impl: Any = self.impl
        return digest(impl.effect_of(args)) if _has(self.impl, "effect_of") else args_digest(args)

    def unit_of_call(self, args: BaseModel) -> tuple[str, int, int] | None:
        """The atomic unit that a call is part of: its name, which step, of how many; or None."""
        if self.unit is None:
            return None
        impl: Any = self.impl
        key = str(impl.unit_key(args))
        if len(self.unit.name) + len(key) >= NAME_LENGTH or not is_storable(key):
            key = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
        return f"{self.unit.name}:{key}", self.unit.step, self.unit.of

    def item_keys(self, args: BaseModel) -> list[str]:
        """The items of a call, in order: one for each effect that it will have.

        Raises BadArguments for items that cannot be told apart, or whose name cannot be kept.
        """
        impl: Any = self.impl
        keys: list[str] = impl.item_keys(args) if self.has_items else []
        reasons = [
            _reason((key[:40],), "cannot be kept as the name of an item")
            for key in keys
            if len(key) > NAME_LENGTH or not is_storable(key)
        ]
        counted = Counter(keys)
        reasons += [_reason((key,), "is there twice") for key in counted if counted[key] > 1]
        if reasons:
            raise self._do_not_fit(reasons)
        return keys

    def _do_not_fit(self, reasons: list[str]) -> BadArguments:
        more = len(reasons) - MOST_REASONS
        reasons = [texts.cut(reason, LONGEST_REASON) for reason in reasons[:MOST_REASONS]]
        reasons += [f"and {more} more"] if more > 0 else []
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
    unit: Unit | None = None,
    uninterruptible: bool = False,
    horizon: float | None = None,
) -> Callable[[T], T]:
    """Class decorator that registers one instance of the class under `name`.

    `timeout` and `horizon` are in seconds; a tool that only reads needs no horizon, and any other
    that says nothing has a long one. Raises RegistrationError, with a sentence that says what to
    write: no tier, no model of the arguments, no undo as the tier promises it, a name that is
    taken, a time that makes no sense, a unit that does not add up, a verb that is `async def`.
    """

    def register(cls: T) -> T:
        impl = cls()
        gaps = _gaps(name, impl, tier, args)
        gaps += [*_unit_gaps(name, impl, tier, unit), *_item_gaps(name, impl, tier)]
        if gaps := [*gaps, *_time_gaps(name, timeout, horizon)]:
            raise RegistrationError(" ".join(gaps), tool=name)
        assert tier is not None and args is not None  # noqa: PT018  (both are gaps above)
        _tools[name] = RegisteredTool(
            name=name,
            tier=tier,
            args=args,
            timeout=timeout,
            revision=_revision(name, tier, args, revision),
            impl=impl,
            unit=unit,
            uninterruptible=uninterruptible,
            horizon=_horizon(tier, horizon),
        )
        return cls

    return register


def get(name: str) -> RegisteredTool | None:
    """The tool of that name, or None. One of our code costs nothing; others are in the database."""
    if (found := _tools.get(name)) is not None:
        return found
    return next((item for look in _elsewhere if (item := look(name)) is not None), None)


def look_also(look: Callable[[str], RegisteredTool | None]) -> None:
    """Have `get` ask this, too, for names that our code does not have."""
    if look not in _elsewhere:
        _elsewhere.append(look)


def all() -> list[RegisteredTool]:
    """Every tool of our code and of installed packages, by name; not the imported ones."""
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
    gaps += verbs.gaps(name, impl)
    if isinstance(tier, Tier):
        gaps += undo_gaps(name, tier, impl)
    else:
        tiers = ", ".join(f"Tier.{item.name}" for item in Tier)
        gaps.append(f"Tool “{name}” has no tier: write tier=… with one of {tiers}.")
    return gaps


def _unit_gaps(name: str, impl: object, tier: object, unit: Unit | None) -> list[str]:
    if unit is None:
        return []
    gaps = []
    if not _has(impl, "unit_key"):
        gaps.append(f"Tool “{name}” is a step of “{unit.name}”: write unit_key(self, args) -> str.")
    if not (unit.name and ":" not in unit.name and len(unit.name) <= NAME_LENGTH // 2):
        gaps.append(f"Tool “{name}”: write unit=Unit(a short name without a colon, …).")
    if not (unit.of >= 2 and 1 <= unit.step <= unit.of):
        gaps.append(f"Tool “{name}”: write unit=Unit(…, step=1…of, of=2 or more).")
    if tier is Tier.READ_ONLY:
        gaps.append(f"Tool “{name}” only reads: a unit is made of effects, so write no unit=.")
    if _has(impl, "item_keys"):
        gaps.append(f"Tool “{name}” is a step of a unit: it has one effect, so write no item_keys.")
    for other in _tools.values():
        if other.unit is None or other.unit.name != unit.name:
            continue
        if other.unit.of != unit.of:
            gaps.append(f"“{unit.name}” has {other.unit.of} steps for “{other.name}”: write of=….")
        elif other.unit.step == unit.step:
            gaps.append(f"Step {unit.step} of “{unit.name}” is “{other.name}”: write step=….")
    return gaps


def longest_timeout() -> int:
    """Seconds: an executor that takes longer over one task is ended."""
    return max(1, settings.EXECUTOR_LIMIT - TIME_TO_SPARE)


def _time_gaps(name: str, timeout: float, horizon: float | None) -> list[str]:
    gaps = []
    if not 0 < timeout <= longest_timeout():
        most = longest_timeout()
        gaps.append(f"Tool “{name}”: write timeout=<seconds>, more than 0 and at most {most}.")
    if not 0 <= (horizon or 0) <= LONGEST_HORIZON:
        gaps.append(f"Tool “{name}”: write horizon=<seconds>, from 0 to {LONGEST_HORIZON:.0f}.")
    return gaps


def _horizon(tier: Tier, declared: float | None) -> float:
    if declared is None:
        return 0.0 if tier is Tier.READ_ONLY else UNKNOWN_HORIZON
    return float(declared)


def _item_gaps(name: str, impl: object, tier: object) -> list[str]:
    if _has(impl, "item_keys") and tier is Tier.READ_ONLY:
        return [f"Tool “{name}” only reads: items are effects, so write no item_keys."]
    return []


def _not_as_written(args: BaseModel) -> list[str]:
    """What is not kept as it was written must not be done: consent is to what is kept."""
    fields = [((name,), value) for name, value in args.model_dump().items()]
    hidden = [(tuple(path), value) for path, value in secrets_of(args)]
    return [
        _reason(loc, "cannot be kept as it is")
        for loc, value in (*fields, *hidden)
        if not is_storable(value)
    ]


def _can_be_shown(args: Any) -> bool:
    if len(json.dumps(args, ensure_ascii=False)) > LARGEST_ARGUMENTS:
        return False
    level, count = [args], 0
    while level and count <= MOST_VALUES:
        count += len(level)
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [item for each in inner if not isinstance(each, _SINGLE) for item in each]
    return count <= MOST_VALUES


def _has(impl: object, verb: str) -> bool:
    return callable(getattr(impl, verb, None))


def _revision(name: str, tier: Tier, args: type[BaseModel], declared: int) -> str:
    text = json.dumps([name, tier.value, args.model_json_schema(), declared], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _reason(loc: tuple[int | str, ...], message: str) -> str:
    field = ".".join(str(part) for part in loc)
    return f"{field}: {message}" if field else message
