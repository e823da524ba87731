"""Protocol §8: a read without an answer in time has failed, and nobody said that it did not happen.
Its late answer changes nothing: no alarm, and nothing new for the model.
"""

import pytest

from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_landed
from tests.agentruns.steps import Steps, anew, events, pass_time
from tools.contract import Receipt


def test_a_late_read_stays_failed_without_an_alarm(
    steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    run, (call,) = steps.running("test.note")
    claim = steps.claim(call)
    assert pass_gate(claim)
    pass_time(call)
    steps.sweep()
    assert (anew(call).state, anew(call).reason) == ("failed", "no_report")

    record_landed(claim, Receipt({"text": "late"}, "Late."))

    assert (anew(call).state, anew(call).response) == ("failed", "")
    assert [event.data["state"] for event in events(run, "outcome.repeated")] == ["failed"]
    assert "call.contradicted" not in caplog.text
