"""The Celery application. Messages are doorbells: every task re-reads the database."""

import logging.config
import os
from typing import Any

import structlog
from celery import Celery
from celery.signals import setup_logging, task_prerun
from django.conf import settings

from agentruns import pausepoints

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentruns.settings")

app = Celery("agentruns")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def _log_as_everywhere(**kwargs: Any) -> None:
    """Workers and beat log as the other processes do; without this, Celery sets up its own."""
    logging.config.dictConfig(settings.LOGGING)


@task_prerun.connect
def _forget_the_last_task(task: Any, args: tuple[Any, ...], **kwargs: Any) -> None:
    """A thread of the pool must not carry one task's ids into the next one's lines."""
    structlog.contextvars.clear_contextvars()
    pausepoints.begin_task(task.name, tuple(args))
