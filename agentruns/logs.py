"""How this program logs: events with fields, as lines for people or as JSON for machines.

Calm by default: our own events from `level` up, libraries from WARNING up. What a task or a
request is about (`run_id`, `call_id`, `request_id`) is bound once, and is on every line of it.
"""

import logging
import sys
from typing import Any

import structlog
from structlog.processors import ExceptionRenderer
from structlog.tracebacks import ExceptionDictTransformer

# On every line, whoever wrote it.
SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
OURS = ("agentruns", "compensation", "review", "tools")


class OneLine(logging.Filter):
    """For what a stranger can bring about as often as they like: no traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = None
        return True


def configure_structlog() -> None:
    """Hand structlog's events to the standard library, which has one handler for all."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
    )


def logging_config(*, level: str, as_json: bool) -> dict[str, Any]:
    """The dictConfig of every process: web, workers, beat, commands."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "events": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [*SHARED, structlog.stdlib.ExtraAdder()],
                "processors": _rendering(as_json),
            }
        },
        "filters": {"one_line": {"()": OneLine}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "events"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            **{name: {"level": level} for name in OURS},
            # Django's own handlers would print everything a second time.
            "django": {"handlers": [], "level": "WARNING"},
            "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
            # A page that is not there, or a right that is missing, is the answer and no event.
            "django.request": {"level": "ERROR"},
            "django.security.DisallowedHost": {"filters": ["one_line"]},
            "django_structlog": {"level": "ERROR"},
            # It tells of every attempt to connect again; whoever waited is told by an exception.
            "psycopg.pool": {"level": "ERROR"},
            # The MCP client ("client" is its session). It tells what a server answered, word for
            # word, which may be a secret said back; whoever waited is told by an exception.
            "mcp": {"level": "CRITICAL"},
            "client": {"level": "CRITICAL"},
        },
    }


def _rendering(as_json: bool) -> list[Any]:
    """Tracebacks come without local variables: those hold what people wrote, and secrets."""
    clean = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if as_json:
        return [
            clean,
            ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
        ]
    plain = structlog.dev.plain_traceback
    return [
        clean,
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain),
    ]
