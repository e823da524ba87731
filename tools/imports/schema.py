"""A foreign JSON schema: held to limits, and made into the model of a tool's arguments.

Draft 2020-12. Nothing is fetched, and a schema that takes too long to check refuses what it was to
check: whoever wrote it may be hostile, and whoever writes the arguments, too. Regular expressions
are not tried here, for the same reason; the server does that.
"""

import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, ClassVar

from django.utils.translation import gettext as _
from jsonschema import Draft202012Validator, FormatChecker, SchemaError, ValidationError
from jsonschema.validators import extend
from pydantic import BaseModel, ConfigDict, SecretStr, create_model, model_validator
from pydantic import ValidationError as ArgumentsError
from pydantic_core import PydanticCustomError
from referencing import Registry
from referencing.exceptions import Unresolvable

from tools.contract import Data
from tools.digest import canonical_text
from tools.imports.offers import ImportProblem, digest
from tools.secrets import has_secrets

MOST_BYTES = 64 * 1024  # of one schema, as JSON
DEEPEST = 40  # levels of nesting, in a schema and in arguments
LARGEST_ARGUMENTS = 256 * 1024  # as JSON
MOST_STEPS = 20_000  # keywords that are looked at for one set of arguments
MOST_REASONS = 8
TOO_MUCH = "too_much"
TOO_MUCH_SAID = "there is more to check in these arguments than can be checked"
_ELSEWHERE = ("$id", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor")
_DATA = ("default", "example", "examples", "const", "enum")  # in which nothing is a keyword

_steps: ContextVar[list[int] | None] = ContextVar("_steps", default=None)


class _TooMuch(Exception):
    """Checking takes more steps than it may."""


def cleaned(schema: Any, where: str) -> Data:
    """The schema as it is kept: an object's, with every secret marked as such. `where`: for the
    sentence. Raises ImportProblem if it is not one, is too large, or leads elsewhere.
    """
    if not isinstance(schema, dict):
        raise ImportProblem.at(where, _("the schema of the arguments is not an object."))
    _hold_to_limits(schema, where)
    whole: Data = {"type": "object", **_marked(schema)}
    if whole["type"] != "object":
        raise ImportProblem.at(where, _("the arguments are not an object."))
    for keyword, value in _keywords(whole):
        if keyword == "$ref" and not (isinstance(value, str) and resolved(whole, value)):
            said = _("“%(reference)s” leads nowhere inside the schema.")
            raise ImportProblem.at(where, said % {"reference": value})
        if keyword in _ELSEWHERE:
            said = _("“%(keyword)s” is not supported in a schema.")
            raise ImportProblem.at(where, said % {"keyword": keyword})
    try:
        Draft202012Validator.check_schema(whole)
    except SchemaError as error:
        said = _("this is not a JSON schema: %(why)s") % {"why": error.message[:300]}
        raise ImportProblem.at(where, said) from error
    try:
        arguments("trial", whole).model_validate({})
    except ArgumentsError as error:
        if any(each["type"] == TOO_MUCH for each in error.errors()):
            said = _("the schema is made of itself without end.")
            raise ImportProblem.at(where, said) from error
    return whole


def arguments(name: str, schema: Data) -> type[BaseModel]:
    """The model of a tool's arguments: takes what fits `schema`, and has that as its own."""
    made: type[ImportedArguments] = create_model(
        "Arguments_" + digest(name)[:12], __base__=ImportedArguments
    )
    made.schema_as_imported = schema
    made.checker = _Checker(schema, format_checker=FormatChecker(), registry=Registry())
    return made


class ImportedArguments(BaseModel):
    """Arguments that a foreign schema describes. All of them are extras, as they were written; a
    text that the schema marks as secret is a SecretStr.
    """

    model_config = ConfigDict(extra="allow")
    schema_as_imported: ClassVar[Data] = {}
    checker: ClassVar[Any] = None

    @model_validator(mode="before")
    @classmethod
    def _fits(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        if problems := _problems(cls.checker, raw):
            kind = TOO_MUCH if problems == [TOO_MUCH_SAID] else "does_not_fit"
            raise PydanticCustomError(kind, "{said}", {"said": "; ".join(problems)})
        if not has_secrets(cls.schema_as_imported):
            return raw
        token = _steps.set([0])
        try:
            return _wrapped(raw, [cls.schema_as_imported], cls.schema_as_imported)
        except _TooMuch:
            raise PydanticCustomError(TOO_MUCH, "{said}", {"said": TOO_MUCH_SAID}) from None
        finally:
            _steps.reset(token)

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> Data:
        return cls.schema_as_imported


def _problems(checker: Any, raw: Data) -> list[str]:
    """What does not fit, each with where. A value is never repeated: it may be a secret."""
    if _depth(raw) > DEEPEST or len(json.dumps(raw, default=str)) > LARGEST_ARGUMENTS:
        return [TOO_MUCH_SAID]
    token = _steps.set([0])
    found = []
    try:
        for error in checker.iter_errors(raw):
            found.append(_in_words(error))
            if len(found) == MOST_REASONS:
                break
    except (_TooMuch, RecursionError):
        return [TOO_MUCH_SAID]
    except Unresolvable as error:
        return [f"the schema leads nowhere: {error}"[:200]]
    finally:
        _steps.reset(token)
    return found


def _in_words(error: ValidationError) -> str:
    where = ".".join(str(step) for step in error.absolute_path) or "arguments"
    match error.validator:
        case "required":
            there = error.instance if isinstance(error.instance, dict) else {}
            missing = [name for name in error.validator_value if name not in there]
            said = f"missing: {', '.join(map(str, missing))}"
        case "additionalProperties" | "unevaluatedProperties":
            said = "has fields that are not known"
        case "type" | "format" | "const" | "minimum" | "maximum" | "minLength" | "maxLength":
            said = f"must have {error.validator} {json.dumps(error.validator_value)}"
        case "enum":
            said = f"must be one of {json.dumps(error.validator_value, ensure_ascii=False)}"
        case _:
            said = f"does not fit “{error.validator}”"
    return f"{where}: {said}"[:300]


# --- A checker that counts ---------------------------------------------------------------------
def _counted(keyword: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        steps = _steps.get()
        if steps is not None:
            _count(steps, value)
        yield from keyword(validator, value, instance, schema) or ()

    return check


def _count(steps: list[int], value: Any) -> None:
    """A keyword with a long list, such as enum, counts for more than one."""
    steps[0] += 1 + (len(value) // 100 if isinstance(value, list) else 0)
    if steps[0] > MOST_STEPS:
        raise _TooMuch


def _unchecked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """For what is left to the server: a regular expression can take for ever."""
    return iter(())


def _unique(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Compares each item with all before it at once, not with one after the other."""
    if value and validator.is_type(instance, "array"):
        found = {canonical_text(item) for item in instance}
        if len(found) < len(instance):
            yield ValidationError("has something twice")


def _additional(validator: Any, value: Any, instance: Any, schema: Data) -> Iterator[Any]:
    """Which fields are additional is told by patterns, where there are any."""
    if "patternProperties" not in schema:
        yield from (
            Draft202012Validator.VALIDATORS["additionalProperties"](
                validator, value, instance, schema
            )
            or ()
        )


_Checker = extend(
    Draft202012Validator,
    {
        name: _counted(keyword)
        for name, keyword in {
            **Draft202012Validator.VALIDATORS,
            "pattern": _unchecked,
            "patternProperties": _unchecked,
            "unevaluatedProperties": _unchecked,
            "uniqueItems": _unique,
            "additionalProperties": _additional,
        }.items()
    },
)


# --- Limits and secrets ------------------------------------------------------------------------
def _hold_to_limits(schema: Any, where: str) -> None:
    if _depth(schema) > DEEPEST:
        said = _("the schema is nested deeper than %(limit)s levels.") % {"limit": DEEPEST}
        raise ImportProblem.at(where, said)
    if (size := len(json.dumps(schema, default=str))) > MOST_BYTES:
        said = _("the schema has %(size)s bytes, more than %(limit)s.")
        raise ImportProblem.at(where, said % {"size": size, "limit": MOST_BYTES})


def _depth(value: Any) -> int:
    """Levels of nesting; counts no further than one more than allowed."""
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        inner = [
            item.values() if isinstance(item, dict) else item
            for item in level
            if isinstance(item, dict | list)
        ]
        level = [each for items in inner for each in items]
        depth += 1 if inner else 0
    return depth


def _keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, list):
        for item in schema:
            yield from _keywords(item)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if isinstance(value, dict | list) and key not in _DATA:
                yield from _keywords(value)
            elif not isinstance(value, dict | list):
                yield key, value


def resolved(whole: Data, reference: str) -> Any:
    """What a reference inside the schema leads to; None for any other."""
    if reference == "#":
        return whole
    if not reference.startswith("#/"):
        return None
    at: Any = whole
    for step in reference[2:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, list):
            at = at[int(step)] if step.isdigit() and int(step) < len(at) else None
        else:
            at = at.get(step) if isinstance(at, dict) else None
    return at


def _marked(schema: Any) -> Any:
    """A copy, in which a password is marked as what is only written: that is how secrets are told
    (tools/secrets.py).
    """
    if isinstance(schema, list):
        return [_marked(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: _marked(value) for key, value in schema.items()}
    return copy | {"writeOnly": True} if copy.get("format") == "password" else copy


def _wrapped(value: Any, schemas: list[Any], whole: Data, *, is_secret: bool = False) -> Any:
    """A copy of the arguments, each text a SecretStr that any of the schemas which may hold for it
    marks as secret; better one too many than one shown.
    """
    schemas = _spread(schemas, whole)
    is_secret = is_secret or any(_is_secret(schema) for schema in schemas)
    if isinstance(value, str) and is_secret:
        return SecretStr(value)
    if isinstance(value, dict):
        return {
            key: _wrapped(item, _of_property(schemas, key), whole, is_secret=is_secret)
            for key, item in value.items()
        }
    if isinstance(value, list):
        inner = _of_items(schemas)
        return [_wrapped(item, inner, whole, is_secret=is_secret) for item in value]
    return value


def _is_secret(schema: Data) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _spread(schemas: list[Any], whole: Data) -> list[Data]:
    """The schemas, and all that they refer to for the same value, each once."""
    found: dict[int, Data] = {}  # by identity
    waiting = list(schemas)
    steps = _steps.get()
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in found:
            continue
        found[id(schema)] = schema
        if steps is not None:
            _count(steps, schema)
        if isinstance(reference := schema.get("$ref"), str):
            waiting.append(resolved(whole, reference))
        for key in ("allOf", "anyOf", "oneOf"):
            waiting += schema.get(key) or []
        waiting += [schema.get(key) for key in ("if", "then", "else", "not")]
        waiting += dict(schema.get("dependentSchemas") or {}).values()
    return list(found.values())


def _of_property(schemas: list[Data], key: str) -> list[Any]:
    inner: list[Any] = []
    for schema in schemas:
        properties = schema.get("properties") or {}
        inner += [properties[key]] if key in properties else [schema.get("additionalProperties")]
        inner += dict(schema.get("patternProperties") or {}).values()
        inner.append(schema.get("unevaluatedProperties"))
    return inner


def _of_items(schemas: list[Data]) -> list[Any]:
    inner: list[Any] = []
    for schema in schemas:
        inner += schema.get("prefixItems") or []
        inner += [schema.get(key) for key in ("items", "contains", "unevaluatedItems")]
    return inner
