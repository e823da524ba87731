"""I6: the ledger is whole, and nobody has touched it since."""

from collections.abc import Iterator

from agentruns.verify.facts import Facts, Finding
from agentruns.verify.shown import rows_are_as_recorded


def ledger_is_whole(facts: Facts) -> Iterator[Finding]:
    """The events, and what people read of the rows that they are about."""
    yield from chain_verifies(facts)
    yield from rows_are_as_recorded(facts)


def chain_verifies(facts: Facts) -> Iterator[Finding]:
    """seq without gaps, each hash of its event and of the hash before, the run at the head."""
    head, seq = "", 0
    for event in facts.events:
        seq += 1
        if event.seq != seq:
            yield facts.breach(f"event {seq} is missing: the next one is {event.seq}")
        elif event.prev_hash != head:
            yield facts.breach(f"event {seq} is not chained to the one before")
        elif not event.is_intact:
            yield facts.breach(f"event {seq} is not what was written")
        else:
            yield None
        head, seq = event.hash, event.seq
    is_head = (facts.run.ledger_seq, facts.run.ledger_head) == (seq, head)
    yield facts.unless(is_head, f"the run says that its last event is another: {seq}")
