"""A1, A2 and A6 at once, small: what `make load` measures holds in kind; its figures are apart."""

import pytest

from tests.load.__main__ import measure

pytestmark = [pytest.mark.evidence, pytest.mark.stack, pytest.mark.timeout(400)]


def test_one_account_at_its_worst_keeps_nobody_from_stopping() -> None:
    report = measure(stops=20, starts=40, sockets=40)

    attack = report["attack"]
    assert "failed" not in attack
    assert attack["start: 201"] <= 21  # one of which has ended; the rest were refused
    assert attack["start: 429"] >= 1
    assert attack["sockets opened"] >= 1
    # The machine has other tests to do: an order of magnitude, where it was seconds.
    assert report["p99"] < 1.0
    assert max(report["times"]["until it began"]) < 20.0
