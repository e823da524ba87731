"""Fields that several tools' arguments share."""

from typing import Annotated

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from pydantic import AfterValidator, StringConstraints


def _address(value: str) -> str:
    try:
        validate_email(value)
    except ValidationError:
        raise ValueError(f"“{value}” is not a mail address") from None
    if not (value.isascii() and value.isprintable()):
        raise ValueError(f"“{value}” has letters that mail servers do not take")
    return value


def each_once(values: list[str]) -> list[str]:
    """For a list in which each may be once. Raises ValueError, which names those that are not."""
    if twice := [each for each in dict.fromkeys(values) if values.count(each) > 1]:
        raise ValueError(f"each once: {', '.join(twice)} is there twice")
    return values


Address = Annotated[str, StringConstraints(max_length=254), AfterValidator(_address)]
# One line: a line break in a header would begin another header, and some call U+0085, U+2028 and
# U+2029 line breaks, too.
Line = Annotated[
    str,
    StringConstraints(
        min_length=1,
        max_length=200,
        strip_whitespace=True,
        pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$",
    ),
]
Text = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
