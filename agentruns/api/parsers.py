"""How a request's body is read: JSON, only so much of it, and each member once."""

import json
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser
from rest_framework.utils.json import strict_constant

from agentruns.api.errors import BodyTooLarge


class LimitedJSONParser(JSONParser):
    """JSONParser, which reads a stream of any size, with DATA_UPLOAD_MAX_MEMORY_SIZE in front.

    Of a member that comes twice, two readers would take two values: there is no such body.
    """

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Raises BodyTooLarge, or ParseError for what is not JSON."""
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge()
        try:
            return json.loads(
                body.decode(), parse_constant=strict_constant, object_pairs_hook=_each_once
            )
        except (ValueError, RecursionError) as error:
            raise ParseError() from error


def _each_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a member comes twice")
    return found
