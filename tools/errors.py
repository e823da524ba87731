"""What tools and their registry raise: each error has a code, a sentence and data."""

from typing import Any


class ToolError(Exception):
    """Base of all errors of the tools package.

    `code` is stable and for machines; `sentence` is for people; `data` holds details.
    """

    code = "tool_error"

    def __init__(self, sentence: Any, *, code: str | None = None, **data: Any) -> None:
        """`sentence` is text or a lazy translation."""
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code or self.code
        self.data = data

    def __str__(self) -> str:
        return str(self.sentence)


class RegistrationError(ToolError):
    """A tool is incomplete and is refused at import; the sentence says what to write."""

    code = "tool_incomplete"


class BadArguments(ToolError):
    """Arguments do not fit the tool's schema. `reasons` lists one plain line per problem."""

    code = "bad_arguments"

    def __init__(self, sentence: Any, *, reasons: list[str]) -> None:
        super().__init__(sentence, reasons=reasons)
        self.reasons = reasons


class NoEffect(ToolError):
    """Raised by `prepare` or `commit` where it is KNOWN that nothing happened outside.

    `is_passing`: it may work in a while (nobody listened, too many requests), so it is tried
    again; `retry_after`: not before that many seconds.
    """

    code = "no_effect"

    def __init__(
        self,
        code: str,
        sentence: Any,
        *,
        is_passing: bool = False,
        retry_after: float | None = None,
        **data: Any,
    ) -> None:
        super().__init__(sentence, code=code, **data)
        self.is_passing = is_passing
        self.retry_after = retry_after


class Unclear(ToolError):
    """Raised by `commit` where the outside system has answered, and what it said decides nothing:
    the call is in doubt, and the sentence is shown.
    """

    code = "unclear"
