"""I12: an approval lets through exactly what was shown, once, before it runs out; where several
people have to agree, all of them have.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from agentruns.models import ToolCall
from agentruns.models.shown import moment
from agentruns.protocol.consent import AGREED
from agentruns.states import CALL
from agentruns.verify.facts import Event, Facts, Finding
from tools import registry
from tools.contract import Tier
from tools.digest import args_digest
from tools.errors import BadArguments
from tools.storable import storable

# What the ledger says of a decision.
DECIDED = {"approved": AGREED, "rejected": ("call.rejected",)}


@dataclass
class _Consent:
    """What a person allowed so far, as one call's events are read in order."""

    was_asked: bool = False
    expires_at: datetime | None = None
    digest: str = ""
    given: int = 0  # and neither used nor taken back
    is_out: bool = False
    needed: int = 1
    counted: int = 0  # as the ledger says when it was given
    people: set[str] = field(default_factory=set)

    def hear(self, event: Event) -> None:
        """Somebody has agreed, or more people have to."""
        self.needed = max(self.needed, event.data.get("needed", 1))
        if event.kind != "call.approvals_raised":
            self.people.add(event.actor)


def consent_is_exact(facts: Facts) -> Iterator[Finding]:
    """What passed the gate had its consent, and what was shown is what went out."""
    for call in facts.calls:
        history = facts.by_call[call.pk]
        if any(event.kind == "call.commit_allowed" for event in history):
            yield from _gate_had_consent(facts, call, history)
        yield _is_as_proposed(facts, call, history)
    yield from _decisions_are_kept(facts)


def _gate_had_consent(facts: Facts, call: ToolCall, history: list[Event]) -> Iterator[Finding]:
    consent = _Consent()
    for event in history:
        match event.kind:
            case "call.approval_requested":
                consent.was_asked = True
                consent.expires_at = datetime.fromisoformat(event.data["expires_at"])
                consent.needed = event.data.get("needed", 1)
            case "call.approval_given" | "call.approvals_raised":
                consent.hear(event)
            case "call.approved" if "digest" in event.data:
                consent.hear(event)
                consent.given += 1
                consent.counted = event.data.get("given", 1)
                consent.digest = event.data["digest"]
                if "expires_at" in event.data:
                    consent.expires_at = datetime.fromisoformat(event.data["expires_at"])
            case "call.approved":
                consent.was_asked = False  # it goes by its tier after all
            case "call.commit_allowed":
                if wrong := _not_allowed(call, event, consent):
                    yield facts.breach(f"call {call.pk} (seq {event.seq}) {wrong}")
                else:
                    yield None
                consent.is_out, consent.given = consent.given > 0, 0
            case "call.postponed" if consent.is_out:
                consent.is_out, consent.given = False, 1
    if call.consent_digest:
        is_used = call.consent_used_at is not None
        what = f"call {call.pk}: its row and its ledger differ on whether its consent was used"
        yield facts.unless(is_used == consent.is_out, what)
        what = f"call {call.pk}: its row and its ledger differ on how many have agreed"
        yield facts.unless(call.consent_count == consent.counted, what)


def _looked_at(event: Event) -> datetime:
    """When the gate looked: a moment before it wrote, or some on a busy machine."""
    said = event.sets.get("call", {}).get("gate_passed_at")
    return moment(said) if said else event.at


def _not_allowed(call: ToolCall, event: Event, consent: _Consent) -> str:
    """Why the call should not have passed the gate at this moment; "" if it was right to."""
    if not consent.was_asked and event.data.get("tier") != Tier.IRREVERSIBLE:
        return ""
    if consent.given != 1:
        return f"passed the gate on {consent.given} approvals that were not used"
    needed = max(consent.needed, event.data.get("approvals", 1))
    if min(consent.counted, len(consent.people)) < needed:
        return f"passed the gate with the word of {len(consent.people)} people out of {needed}"
    if not consent.digest == call.args_digest != "":
        return "passed the gate with other arguments than those that were approved"
    if consent.expires_at is None or _looked_at(event) > consent.expires_at:
        return "passed the gate after its approval had run out"
    return ""


def _is_as_proposed(facts: Facts, call: ToolCall, history: list[Event]) -> Finding:
    """The arguments are those of the ledger, and have the digest that people are asked about."""
    proposed = [event.data.get("args") for event in history if event.kind == "call.proposed"]
    if proposed != [storable(call.args)]:
        return facts.breach(f"call {call.pk}: its arguments are not those that were proposed")
    registered = registry.get(call.tool) if call.consent_digest else None
    if registered is None or registered.revision != call.tool_revision:
        return None  # nobody here can tell any more how this tool read its arguments
    if registered.has_secrets and call.state in CALL.terminal:
        return None  # the digest is of the secrets, too, and they are forgotten
    try:
        is_theirs = args_digest(call.arguments(registered)) == call.args_digest
    except BadArguments:
        # What fits a tool with secrets may depend on settings that are others here.
        is_theirs = registered.has_secrets
    return facts.unless(is_theirs, f"call {call.pk}: its digest is not that of its arguments")


def _decisions_are_kept(facts: Facts) -> Iterator[Finding]:
    """What a person decided is in the ledger, and what they were shown is what the call says."""
    calls = {call.pk: call for call in facts.calls}
    for decision in facts.approvals:
        call = calls[decision.call_id]
        kinds = DECIDED[decision.verdict]
        recorded = [event for event in facts.by_call[call.pk] if event.kind in kinds]
        if not recorded:
            yield facts.breach(f"{decision.pk}: nothing of it is in the ledger")
        elif (decision.digest, decision.args) != (call.args_digest, call.args):
            yield facts.breach(f"{decision.pk}: what was shown is not what the call says")
        else:
            yield None
