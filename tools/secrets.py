"""Secrets among arguments: kept apart from them, so that whatever shows arguments shows none.

A secret is a field of pydantic's type SecretStr or SecretBytes, however deep. A path leads to it
from the arguments: the names of fields, keys, and places in lists.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote, quote_plus

from pydantic import BaseModel, SecretBytes, SecretStr

from tools.contract import Data

# [[path, secret], …]: as JSON, a path is a list.
Secrets: TypeAlias = list[tuple[list[str | int], str]]
# What stands in place of a secret; what pydantic writes for one, too.
MASK = "**********"
SHORTEST = 4  # characters; what is shorter is found in any text


def secrets_of(args: BaseModel) -> Secrets:
    """Every secret in a validated model, with its path; empty ones and None are none."""
    return [(list(path), value) for path, value in _found(args.model_dump(), ()) if value]


def masked(args: BaseModel) -> Data:
    """The arguments as JSON, in which each secret is MASK."""
    return args.model_dump(mode="json")


def unmasked(args: Data, secrets: Secrets | None) -> Data:
    """The arguments as JSON, with each secret back in its place. A copy; `args` stays as it is."""
    whole: Any = _copy(args)
    for path, value in secrets or ():
        at = whole
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
    return dict(whole)


def without(value: Any, secrets: Iterable[str]) -> Any:
    """A text, or JSON, with MASK wherever one of these secrets stands in it, as it is or as it is
    written within JSON or an address: for what somebody outside has answered, who may say back what
    they were told. Of a text that was cut before, a secret's part stays: cut afterwards.
    """
    told = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
    return _without(value, sorted(told, key=len, reverse=True))


def has_secrets(schema: Any) -> bool:
    """Whether a JSON schema has a field that is only written: a secret."""
    if isinstance(schema, Mapping):
        return schema.get("writeOnly") is True or any(map(has_secrets, schema.values()))
    return isinstance(schema, list) and any(map(has_secrets, schema))


def _found(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    match value:
        case SecretStr():
            yield path, value.get_secret_value()
        case SecretBytes():
            yield path, value.get_secret_value().decode()
        case Mapping():
            for key, item in value.items():
                yield from _found(item, (*path, str(key)))
        case list() | tuple():
            for place, item in enumerate(value):
                yield from _found(item, (*path, place))


def _forms(secret: str) -> Iterator[str]:
    """The ways in which it may be written."""
    yield secret
    for as_ascii in (True, False):
        yield json.dumps(secret, ensure_ascii=as_ascii)[1:-1]
    yield quote(secret, errors="replace")
    yield quote(secret, safe="", errors="replace")
    yield quote_plus(secret, errors="replace")


def _without(value: Any, secrets: list[str]) -> Any:
    match value:
        case str():
            for secret in secrets:
                value = value.replace(secret, MASK)
            return value
        case dict():
            return {_without(key, secrets): _without(item, secrets) for key, item in value.items()}
        case list():
            return [_without(item, secrets) for item in value]
    return value


def _copy(value: Any) -> Any:
    match value:
        case dict():
            return {key: _copy(item) for key, item in value.items()}
        case list():
            return [_copy(item) for item in value]
    return value
