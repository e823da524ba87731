"""What the bench ran on, without a name or a path of it."""

import importlib.metadata
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import psycopg

LIBRARIES = ("django", "psycopg", "dbos", "langgraph", "langgraph-checkpoint-postgres")


def describe(folder: Path, database_url: str) -> dict[str, Any]:
    """Cores, memory, kernel, versions; and what it costs to have data on the disk of `folder`."""
    with psycopg.connect(database_url) as connection:
        postgres = connection.execute("SHOW server_version").fetchone()
        durable = connection.execute("SHOW fsync").fetchone()
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "processor": _processor(),
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "postgres": postgres[0] if postgres else "",
        "fsync": durable[0] if durable else "",
        "fdatasync_ms": _fdatasync_ms(folder),
        "libraries": {name: found for name in LIBRARIES if (found := _version(name))},
    }


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _fdatasync_ms(folder: Path) -> float:
    """The median of writing a page and having it on disk."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(200):
            file.write(bytes(8192))
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return round(statistics.median(times) * 1000, 3)
