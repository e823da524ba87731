"""Fields of what the API takes."""

import json
from typing import Any

from rest_framework import serializers
from rest_framework.fields import empty

from tools.storable import storable
from tools.texts import cut


class Text(serializers.CharField):
    """A text, and nothing that could be read as one: not 1, not true."""

    def to_internal_value(self, data: Any) -> str:
        """Raises ValidationError for what is no text."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Why(serializers.CharField):
    """Why a person or a program stops something. Whatever it is, it keeps nothing from stopping:
    as much of it as can be kept is kept.
    """

    def __init__(self, *, most: int, **more: Any) -> None:
        self._most = most
        super().__init__(
            required=False, default="", allow_blank=True, allow_null=True, help_text="Why.", **more
        )

    def run_validation(self, data: Any = empty) -> str:
        """The text that is kept; a value of another kind as its JSON."""
        if data is empty or data is None:
            return ""
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        return cut(storable(text.strip()), self._most)
