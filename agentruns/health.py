"""Is it alive, is it ready: two answers for whoever supervises these processes."""

from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agentruns.postgresql.base import TakesNoWrites, must_take_writes

REDIS_TIMEOUT = 0.5  # seconds


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """This process answers. Touches nothing else."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 once runs can be started and stopped here; else 503, naming what is missing.

    Redis is told of, and decides nothing: it only rings doorbells, and Stop does without it.
    """
    database = _database_state()
    is_ready = database == "ok"
    body: dict[str, Any] = {
        "status": "ready" if is_ready else "not_ready",
        "database": database,
        "redis": _redis_state(),
    }
    return JsonResponse(body, status=200 if is_ready else 503)


def _database_state() -> str:
    try:
        must_take_writes()
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except TakesNoWrites:
        return "takes no writes"
    except DatabaseError:
        return "cannot be reached"
    if waiting:
        first = waiting[0][0]
        return f"{len(waiting)} migrations are not applied, beginning with {first}"
    return "ok"


def _redis_state() -> str:
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL,
            socket_connect_timeout=REDIS_TIMEOUT,
            socket_timeout=REDIS_TIMEOUT,
        ) as client:
            client.ping()
    except redis.RedisError:
        return "cannot be reached; Stop still works"
    return "ok"
