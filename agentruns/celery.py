"""The Celery application. Messages are doorbells: every task re-reads the database."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentruns.settings")

app = Celery("agentruns")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
