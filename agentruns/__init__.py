"""agentruns: agents act for people, and Stop means what people think it means."""

from agentruns.celery import app as celery_app

__all__ = ["celery_app"]
