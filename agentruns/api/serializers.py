"""What the API takes and gives, typed. The OpenAPI document is made from these."""

from typing import Any

from django.conf import settings
from django.db.models import Sum
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agentruns.api.fields import Text, Why
from agentruns.models import LIMITS, Checkpoint, LedgerEvent, Output, Run, StopRequest, ToolCall
from agentruns.page.stops import closing, stops_of
from agentruns.protocol.budget import usage
from agentruns.protocol.resume import RELEASE, VOID
from agentruns.protocol.stop import REASON_LENGTH, SIGNALS
from agentruns.queries import children_of, inventory, latest_stop, milliseconds
from agentruns.states import CALL, OUTPUT, RUN, SUSPENDED_REASONS
from tools.models import TIER_LABELS

LEDGER_PAGE = 100
LEDGER_PAGE_MAX = 500
RUN_STATUS, CALL_STATE, OUTPUT_STATUS = RUN.choices(), CALL.choices(), OUTPUT.choices()
STOP_SIGNAL = [(signal, signal) for signal in SIGNALS]
UNDO = ("", "possible", "impossible", "not_needed", "undone")


class TokenRequest(serializers.Serializer[Any]):
    username = Text(min_length=1, max_length=150)
    password = Text(min_length=1, max_length=4096, trim_whitespace=False, write_only=True)


class TokenAnswer(serializers.Serializer[Any]):
    token = serializers.CharField(help_text="For `Authorization: Token …`. Shown once; kept hashed")
    expiry = serializers.DateTimeField(allow_null=True)


class RunCreate(serializers.Serializer[Any]):
    """What is needed to start a run."""

    agent = serializers.SlugField(max_length=60, help_text="The agent's short name.")
    goal = Text(
        min_length=1,
        trim_whitespace=False,
        help_text=f"What the agent should do, at most {settings.GOAL_MAX_LENGTH} characters.",
    )
    parent = Text(  # type: ignore[assignment]
        required=False,
        default="",
        allow_blank=True,
        max_length=40,
        help_text="A run of yours, still at work, that starts this one. It stops with it.",
    )


class CancelRequest(serializers.Serializer[Any]):
    """Everything about a Stop is optional; an empty body stops the run."""

    reason = Why(most=REASON_LENGTH)
    pending = serializers.ChoiceField(
        required=False,
        allow_null=True,
        allow_blank=True,
        choices=StopRequest.Pending.choices,
        help_text="What becomes of the calls that have not started: discard, unless signal is "
        "handoff.",
    )
    signal = serializers.ChoiceField(
        required=False,
        allow_null=True,
        allow_blank=True,
        default="api",
        choices=[("api", "api"), ("handoff", "handoff")],
        help_text="handoff: a person takes the run over. What has not started is frozen for them.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A person who takes over finds everything as it was."""
        frozen, signal = StopRequest.Pending.FREEZE, attrs["signal"] or "api"
        usual = frozen if signal == "handoff" else StopRequest.Pending.DISCARD
        pending = attrs.get("pending") or usual
        if signal == "handoff" and pending != frozen:
            raise serializers.ValidationError({"pending": _("A handoff needs “freeze”.")})
        return attrs | {"pending": pending, "signal": signal}


class PauseRequest(serializers.Serializer[Any]):
    reason = Why(most=REASON_LENGTH)


class ResumeRequest(serializers.Serializer[Any]):
    """An empty body will do where the stop held nothing back."""

    frozen = serializers.ChoiceField(
        required=False,
        default="",
        choices=[(RELEASE, "they go out"), (VOID, "they are dropped")],
        help_text="What becomes of the calls that the stop froze. One that needs an approval is "
        "dropped in either case; the agent may ask for it again.",
    )
    epoch = serializers.IntegerField(
        required=False,
        help_text="The epoch of the stop that is meant: then a request that is sent again does "
        "not resume what was stopped anew.",
    )


class BudgetRequest(serializers.ModelSerializer[Run]):
    """New limits; null lifts one, and what is left out stays as it is."""

    class Meta:
        model = Run
        fields = LIMITS

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """There has to be something to set."""
        if not attrs:
            raise serializers.ValidationError(_("Name a limit."))
        return attrs


class LedgerQuery(serializers.Serializer[Any]):
    after = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=2**63 - 1, help_text="The last seq seen."
    )
    limit = serializers.IntegerField(
        required=False, default=LEDGER_PAGE, min_value=1, max_value=LEDGER_PAGE_MAX
    )


class Call(serializers.Serializer[Any]):
    """One call of a tool, as the ledger has it."""

    id = serializers.CharField()
    tool = serializers.CharField()
    tier = serializers.ChoiceField(choices=[(t.value, label) for t, label in TIER_LABELS.items()])
    state = serializers.ChoiceField(choices=CALL_STATE)
    reason = serializers.CharField(
        allow_blank=True, help_text="Why it is in this state, as a code."
    )
    summary = serializers.CharField(allow_blank=True, help_text="What it does, in plain words.")
    undo = serializers.ChoiceField(choices=UNDO, help_text="Empty for what has not landed.")
    attempts = serializers.IntegerField(help_text="How many had passing trouble and no effect.")
    next_attempt_at = serializers.DateTimeField(allow_null=True)
    lookups = serializers.IntegerField(
        default=0,
        help_text="How often the outside system was asked what became of it, since the doubt began "
        "or a person had it asked again.",
    )
    last_lookup = serializers.ChoiceField(
        choices=ToolCall.LastLookup.choices,
        allow_blank=True,
        default="",
        help_text="What the last of these came to. Until `horizon_at`, not_found decides nothing.",
    )
    next_lookup_at = serializers.DateTimeField(
        allow_null=True,
        default=None,
        help_text="When the next is due; also of a call that failed, in case it arrives late.",
    )
    horizon_at = serializers.DateTimeField(
        allow_null=True,
        default=None,
        help_text="Until then the outside system may still act on a call that got no answer.",
    )
    unit = serializers.CharField(
        allow_blank=True, help_text="The atomic unit that it is a step of, and which step."
    )
    approvals_needed = serializers.IntegerField(
        default=0, help_text="How many different people have to agree; 0 if nobody was asked."
    )
    approvals_given = serializers.IntegerField(default=0, help_text="How many have.")
    duplicate_of = serializers.CharField(
        allow_blank=True,
        default="",
        help_text="The call whose effect it would repeat, where that is why it asks.",
    )


class Groups(serializers.Serializer[Any]):
    """Every call of the run, each in exactly one group; `undone` is a mark on a done one."""

    done = Call(many=True)
    in_doubt = Call(many=True)
    never_started = Call(many=True)
    failed = Call(many=True)
    in_flight = Call(many=True)


class RunGroups(Groups):
    """The five groups, and what may still start."""

    waiting = Call(many=True)


class WaitsFor(serializers.Serializer[Any]):
    """What a Stop waits for before the run is settled."""

    model = serializers.BooleanField(help_text="The model's stream is being closed.")
    calls = serializers.ListField(child=serializers.CharField(), help_text="Calls in flight.")
    until = serializers.DateTimeField(allow_null=True, help_text="At the latest.")
    after = serializers.ListField(
        child=serializers.CharField(),
        default=list,
        help_text="What has begun and is finished first, in words: “transfer, step 2 of 2”.",
    )


class Child(serializers.Serializer[Any]):
    """A run that this one started."""

    run_id = serializers.CharField()
    status = serializers.ChoiceField(choices=RUN_STATUS)


class StopFacts(serializers.Serializer[Any]):
    """One Stop: who asked, when, why, and who won."""

    epoch = serializers.IntegerField()
    won_by = serializers.ChoiceField(choices=StopRequest.WonBy.choices)
    signal = serializers.ChoiceField(choices=STOP_SIGNAL)
    reason = serializers.CharField(allow_blank=True)
    pending = serializers.ChoiceField(choices=StopRequest.Pending.choices)
    requested_by = serializers.CharField(allow_null=True, help_text="A user name.")
    requested_at = serializers.DateTimeField()
    no_new_effect_ms = serializers.FloatField(
        allow_null=True, help_text="From the request until no new effect was possible."
    )
    interrupted = serializers.ChoiceField(
        choices=StopRequest.Interrupted.choices, default="", help_text="What the stop met."
    )
    closing = serializers.CharField(
        allow_blank=True, default="", help_text="What that means, in one sentence."
    )


class StopAnswer(StopFacts):
    """How things stood when the Stop took effect. The same at every repeat of the request."""

    run_id = serializers.CharField()
    phase = serializers.ChoiceField(choices=RUN_STATUS)
    groups = Groups()
    waits_for = WaitsFor()
    children = Child(many=True, default=list, help_text="The runs below it, as the stop left them.")
    ended_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Only if the run had ended before."
    )
    ended_before_ms = serializers.FloatField(
        required=False, allow_null=True, help_text="How long before the Stop the run had ended."
    )


class RunStop(StopFacts):
    """The latest Stop of a run, and its two clocks."""

    safe_stop_ms = serializers.FloatField(
        allow_null=True, help_text="From the request until the run had settled; null until then."
    )


class Tokens(serializers.Serializer[Any]):
    """Tokens as the model's provider counts them."""

    read = serializers.IntegerField()
    written = serializers.IntegerField()


class RunUrls(serializers.Serializer[Any]):
    self = serializers.CharField()
    page = serializers.CharField(help_text="For people, in a browser.")
    cancel = serializers.CharField()
    pause = serializers.CharField()
    unpause = serializers.CharField()
    resume = serializers.CharField()
    budget = serializers.CharField()
    ledger = serializers.CharField()
    snapshot = serializers.CharField()


class Used(serializers.Serializer[Any]):
    """What the run has used so far."""

    tokens = serializers.IntegerField(help_text="Read and written.")
    cost = serializers.DecimalField(max_digits=None, decimal_places=6, help_text="US dollars.")
    calls = serializers.IntegerField(help_text="Calls that passed the gate.")
    seconds = serializers.FloatField(
        help_text="At work: not while it waited, was paused, or was stopped."
    )


class Budget(serializers.ModelSerializer[Run]):
    """What the run may use (null: no limit), what happens then, and what it has used."""

    used = serializers.SerializerMethodField()

    class Meta:
        model = Run
        fields = (*LIMITS, "on_limit", "degraded_at", "used")
        read_only_fields = fields

    @extend_schema_field(Used)
    def get_used(self, run: Run) -> Any:
        return Used(usage(run)).data


class RunSummary(serializers.ModelSerializer[Run]):
    """One run in a list."""

    status = serializers.ChoiceField(choices=RUN_STATUS, read_only=True)
    status_label = serializers.SerializerMethodField(help_text="The status in words.")
    owner = serializers.CharField(source="owner.username")
    agent = serializers.CharField(source="agent_id")
    thread = serializers.CharField(source="thread_id")
    parent = serializers.CharField(source="parent_id", allow_null=True)  # type: ignore[assignment]
    suspended_reason = serializers.ChoiceField(choices=SUSPENDED_REASONS, allow_blank=True)
    urls = serializers.SerializerMethodField()

    class Meta:
        model = Run
        fields: tuple[str, ...] = (
            "id",
            "owner",
            "thread",
            "parent",
            "agent",
            "goal",
            "status",
            "status_label",
            "suspended_reason",
            "failure",
            "epoch",
            "turn",
            "created_at",
            "started_at",
            "ended_at",
            "urls",
        )
        read_only_fields = fields

    def get_status_label(self, run: Run) -> str:
        return str(RUN.states[run.status].label)

    @extend_schema_field(RunUrls)
    def get_urls(self, run: Run) -> dict[str, str]:
        address = f"/api/v1/runs/{run.pk}"
        parts = ("cancel", "pause", "unpause", "resume", "budget", "ledger", "snapshot")
        page = {"self": address, "page": f"/runs/{run.pk}/"}
        return page | {part: f"{address}/{part}" for part in parts}


class RunDetail(RunSummary):
    """A run with all its calls."""

    stop = serializers.SerializerMethodField(help_text="The latest of `stops`.")
    stops = serializers.SerializerMethodField(help_text="Every stop, the newest first.")
    children = serializers.SerializerMethodField()
    groups = serializers.SerializerMethodField()
    tokens = serializers.SerializerMethodField()
    budget = Budget(source="*")

    class Meta(RunSummary.Meta):
        fields = (
            *RunSummary.Meta.fields,
            "stop",
            "stops",
            "children",
            "groups",
            "tokens",
            "budget",
        )
        read_only_fields = fields

    @extend_schema_field(RunStop(allow_null=True))
    def get_stop(self, run: Run) -> Any:
        stop = latest_stop(run)
        return RunStop(_stop_facts(stop)).data if stop else None

    @extend_schema_field(RunStop(many=True))
    def get_stops(self, run: Run) -> Any:
        return RunStop([_stop_facts(stop) for stop in stops_of(run)], many=True).data

    @extend_schema_field(Child(many=True))
    def get_children(self, run: Run) -> Any:
        return Child(children_of(run), many=True).data

    @extend_schema_field(RunGroups)
    def get_groups(self, run: Run) -> Any:
        return RunGroups(inventory(run)).data

    @extend_schema_field(Tokens)
    def get_tokens(self, run: Run) -> dict[str, int]:
        sums = Output.objects.filter(run=run).aggregate(
            read=Sum("tokens_in", default=0), written=Sum("tokens_out", default=0)
        )
        return dict(sums)


class PartialOutput(serializers.Serializer[Any]):
    """Text that was cut off, or is being written. Never complete."""

    turn = serializers.IntegerField()
    text = serializers.CharField(allow_blank=True)
    offset = serializers.IntegerField(help_text="How many characters there are.")
    status = serializers.ChoiceField(choices=OUTPUT_STATUS)


class ResumeFrom(serializers.Serializer[Any]):
    """The last checkpoint."""

    turn = serializers.IntegerField()
    seq = serializers.IntegerField(help_text="The ledger up to here came before it.")
    before = serializers.ChoiceField(
        choices=Checkpoint.Before.choices, help_text="What it was kept before."
    )


class Snapshot(serializers.Serializer[Any]):
    """Where the run stands, for whoever decides its next turn."""

    run_id = serializers.CharField()
    status = serializers.ChoiceField(choices=RUN_STATUS)
    epoch = serializers.IntegerField()
    plan = Call(many=True)
    done = Call(many=True)
    pending = Call(many=True)
    irreversible_done = Call(many=True)
    partial_output = PartialOutput(allow_null=True)
    resume_from = ResumeFrom(allow_null=True)


class Event(serializers.ModelSerializer[LedgerEvent]):
    """A fact of the run's ledger. `hash` covers the event and the hash before it. `actor`: a
    worker, or `user:` with the id of a person, whose name of today is `actor_name`.
    `sets`: what can be read of the rows since then, content by its digest.
    """

    call = serializers.CharField(source="call_id", allow_null=True)
    actor_name = serializers.SerializerMethodField()
    data = serializers.DictField()  # type: ignore[assignment]
    sets = serializers.DictField()

    class Meta:
        model = LedgerEvent
        fields = (
            *("seq", "at", "kind", "call", "actor", "actor_name", "data", "sets"),
            *("prev_hash", "hash"),
        )
        read_only_fields = fields

    def get_actor_name(self, event: LedgerEvent) -> str:
        return str(self.context["names"][event.actor])


class LedgerPage(serializers.Serializer[Any]):
    """Events in order. Ask again with `after` = `last_seq` for those that come later."""

    events = Event(many=True)
    last_seq = serializers.IntegerField(help_text="The seq of the last event of this page.")
    head_seq = serializers.IntegerField(help_text="The seq of the newest event of the run.")


class FieldError(serializers.Serializer[Any]):
    field = serializers.CharField(allow_blank=True)
    message = serializers.CharField()
    code = serializers.CharField()


class Problem(serializers.Serializer[Any]):
    """RFC 9457, with a `code` for programs; further members are the error's data."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="A sentence for people.")
    code = serializers.CharField()
    errors = FieldError(many=True, required=False)  # type: ignore[assignment]


def stop_body(stop: StopRequest) -> dict[str, Any]:
    """What a Stop is answered with, now and at every repeat."""
    return dict(StopAnswer(stop.answer | {"closing": closing(stop)}).data)


def _stop_facts(stop: StopRequest) -> dict[str, Any]:
    is_won = stop.won_by == StopRequest.WonBy.STOP
    return {
        "epoch": stop.epoch,
        "won_by": stop.won_by,
        "signal": stop.signal,
        "reason": stop.reason,
        "pending": stop.pending,
        "requested_by": stop.requested_by.get_username() if stop.requested_by else None,
        "requested_at": stop.requested_at,
        "no_new_effect_ms": stop.answer.get("no_new_effect_ms"),
        "interrupted": stop.interrupted,
        "closing": closing(stop),
        "safe_stop_ms": milliseconds(stop.requested_at, stop.settled_at) if is_won else None,
    }
