"""R80: one line per event, with the ids that it is about, and without anybody's secrets."""

import json
import logging
import sys
from typing import Any

import structlog
from celery.signals import setup_logging, task_prerun

from agentruns.logs import logging_config
from agentruns.tasks import act


def line(record: logging.LogRecord, *, as_json: bool = True) -> str:
    """The record as the handler would print it."""
    made = dict(logging_config(level="INFO", as_json=as_json)["formatters"]["events"])
    formatter: logging.Formatter = made.pop("()")(**made)
    return formatter.format(record)


def a_record(message: str, exc_info: Any = None) -> logging.LogRecord:
    return logging.LogRecord("kombu", logging.WARNING, "x.py", 1, message, None, exc_info)


def failing() -> logging.LogRecord:
    password = "hunter2"  # noqa: F841  (a local variable, as a traceback could show it)
    try:
        raise ValueError("no such thing")
    except ValueError:
        return a_record("it failed", exc_info=sys.exc_info())


def test_a_line_has_the_ids_that_were_bound() -> None:
    with structlog.contextvars.bound_contextvars(run_id="run_1", call_id="call_1"):
        told = json.loads(line(a_record("broker away")))

    assert (told["event"], told["level"], told["logger"]) == ("broker away", "warning", "kombu")
    assert (told["run_id"], told["call_id"]) == ("run_1", "call_1")
    assert told["timestamp"].endswith("Z")


def test_a_traceback_shows_no_variables() -> None:
    for as_json in (True, False):
        told = line(failing(), as_json=as_json)

        assert "no such thing" in told
        assert "hunter2" not in told.replace('password = "hunter2"', "")


def test_a_task_does_not_carry_the_ids_of_the_one_before() -> None:
    structlog.contextvars.bind_contextvars(call_id="the last one's")

    task_prerun.send(sender=act, task_id="t", task=act, args=[], kwargs={})

    assert structlog.contextvars.get_contextvars() == {}


def test_workers_do_not_set_up_logs_of_their_own() -> None:
    assert setup_logging.receivers


def test_libraries_are_quiet_and_our_own_events_are_told() -> None:
    config = logging_config(level="INFO", as_json=True)

    assert config["root"]["level"] == "WARNING"
    assert config["loggers"]["agentruns"]["level"] == "INFO"
