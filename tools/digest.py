"""One digest for one set of arguments, however it was written down.

An approval is bound to this digest. Key order, defaults spelt out or left out, and number form
(`1`, `1.0`, `1e0`) do not change it; any difference in value does.
"""

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_core import to_jsonable_python


def args_digest(args: BaseModel) -> str:
    """SHA-256 (hex) of the canonical JSON of a validated model."""
    return digest(args)


def digest(value: Any) -> str:
    """The same of any value that a model may hold."""
    return hashlib.sha256(canonical_text(value).encode()).hexdigest()


def canonical_text(value: Any) -> str:
    """JSON that is the same for two values exactly if they are."""
    return _encode(_canonical(value))


def value_text(value: Any) -> str:
    """One text for one value of JSON, the same before it is kept and after it is read back."""
    return _encode(_canonical(value))


def _encode(value: Any) -> str:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def _canonical(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float | Decimal):
        return _number(value)
    if isinstance(value, str):
        # str() also unwraps a StrEnum to its value.
        return str(value)
    if isinstance(value, SecretStr | SecretBytes):
        # Its JSON form is a row of stars: two secrets must not share a digest.
        return _canonical(value.get_secret_value())
    if isinstance(value, bytes):
        return ["bytes", base64.b64encode(value).decode()]
    return _container(value)


def _container(value: Any) -> Any:
    if isinstance(value, BaseModel):
        # Fields, not a dump: a dump drops fields marked `exclude`, and rounds custom types.
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        return _canonical(fields | (value.model_extra or {}))
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, AbstractSet):
        return sorted((_canonical(item) for item in value), key=_encode)
    return to_jsonable_python(value)


def _number(value: int | float | Decimal) -> Any:
    """Whole numbers as integers, whatever type they came in; others in their shortest form. A float
    is the number that it is written as, for so its JSON is read: 1e300 is a power of ten.
    """
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(Decimal(repr(value)))
    if value == value and value not in (float("inf"), float("-inf")) and value == int(value):
        return int(value)
    if isinstance(value, Decimal):
        return ["decimal", str(value.normalize())]
    return value if value == value and abs(value) != float("inf") else ["float", repr(value)]
