"""A DBOS workflow on the same Postgres: each step checkpointed, its effect an append to a list."""

import time

from dbos import DBOS

from tests.bench.databases import database
from tests.bench.play import appended


@DBOS.step()
def step(what: str) -> int:
    appended.append(what)
    return len(appended)


@DBOS.workflow()
def workflow(steps: int) -> list[float]:
    """The seconds of each step."""
    times = []
    for number in range(steps):
        began = time.perf_counter()
        step(f"step {number}")
        times.append(time.perf_counter() - began)
    return times


class Dbos:
    def __init__(self) -> None:
        url = database("dbos").replace("postgresql:", "postgresql+psycopg:", 1)
        DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR"})
        DBOS.launch()

    def round(self, steps: int) -> dict[str, list[float]]:
        return {"dbos": workflow(steps)}


def contestant() -> Dbos:
    return Dbos()
