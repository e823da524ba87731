"""A2: whoever is asked to stop a run stops it: no process owns it, and none refuses for another."""

from collections.abc import Iterator

import pytest

from agentruns.services.ports import LOOPBACK, free_ports
from agentruns.services.processes import Process
from agentruns.services.programs import programs, readiness
from agentruns.services.stack import Stack
from tests.drill.over_http import Program, until

pytestmark = pytest.mark.stack


@pytest.fixture
def elsewhere(stack: Stack, stack_db: None) -> Iterator[Program]:
    """A second web server, which has never heard of any run, and a program that uses it."""
    [port] = free_ports(1)
    env = stack.env | {"PORT": str(port)}
    specs = programs(stack.data_dir / "elsewhere", env, web=True, workers=False, world=False)
    [web] = [Process(spec) for spec in specs if spec.name == "web"]
    web.start()
    try:
        until(readiness(env, ["web"])["web"], bool)
        using = Program(stack, base_url=f"http://{LOOPBACK}:{port}")
        yield using
        using.close()
    finally:
        web.stop()


def test_a_web_process_stops_a_run_that_another_one_started(
    program: Program, elsewhere: Program
) -> None:
    run_id = program.start("inbox")
    program.generating(run_id, turn=1, tokens=3)

    answer = elsewhere.stop(run_id)

    assert (answer["won_by"], answer["waits_for"]["model"]) == ("stop", True)
    assert program.stop(run_id) == elsewhere.stop(run_id) == answer
    assert elsewhere.wait(run_id, "stopped_clean") == program.read(run_id)


def test_a_run_whose_web_process_has_died_is_stopped_by_the_other(
    stack: Stack, program: Program, elsewhere: Program
) -> None:
    run_id = program.start("inbox")
    program.generating(run_id, turn=1, tokens=3)
    stack.kill("web")

    answer = elsewhere.stop(run_id)

    assert answer["won_by"] == "stop"
    elsewhere.wait(run_id, "stopped_clean")
    stack.wait_for("web")
    assert program.stop(run_id) == answer
