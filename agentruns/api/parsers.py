"""How a request's body is read: JSON, and only so much of it."""

from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from agentruns.api.errors import BodyTooLarge


class LimitedJSONParser(JSONParser):
    """JSONParser, which reads a stream of any size, with DATA_UPLOAD_MAX_MEMORY_SIZE in front.

    As UTF-8, whatever encoding the request names: JSON has no other (RFC 8259).
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
            in_utf8 = {**(parser_context or {}), "encoding": "utf-8"}
            return super().parse(BytesIO(body), media_type, in_utf8)
        except RecursionError as error:
            raise ParseError() from error
