"""Undo over the REST API: foresee, ask, stop, try again, settle by hand. Parse, call, render."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agentruns import rights
from agentruns.api.common import OF_A_RUN, SIGNED_IN, problems, seen, valid
from agentruns.api.fields import Text
from agentruns.errors import NotFound, WrongState
from agentruns.models import Run
from compensation import saga
from compensation.models import Compensation
from compensation.queries import PreviewItem, latest_steps, living_steps, stands
from compensation.states import COMPENSATION

ALL = "all"
MOST_CALLS = 1000
ID = {"type": "string", "minLength": 1, "maxLength": 40}
UNDO_STATE = COMPENSATION.choices()
FORESEEN = (
    *("possible", "undone", "under_way", "not_needed"),
    *("impossible", "in_doubt", "in_flight", "not_landed"),
)
ASKED = OF_A_RUN | problems(
    _400="The body cannot be used.",
    _403="You may see the run, but not undo what it did.",
    _409="The run is still at work, or this cannot be undone or settled.",
)
OF_A_STEP = SIGNED_IN | problems(
    _400="The body cannot be used.",
    _403="You may see the run, but not undo what it did.",
    _404="There is no such undo, or you may not see its run.",
    _409="It is not in a state for that.",
)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "array", "items": ID, "minItems": 1, "maxItems": MOST_CALLS},
            {"type": "string", "enum": [ALL]},
        ]
    }
)
class CallIds(serializers.ListField):
    """The ids of calls, or “all”."""

    def to_internal_value(self, data: Any) -> Any:
        return ALL if data == ALL else super().to_internal_value(data)


class UndoCreate(serializers.Serializer[Any]):
    call_ids = CallIds(
        child=Text(max_length=40),
        allow_empty=False,
        max_length=MOST_CALLS,
        help_text="The calls to undo, or “all”: whatever can be undone.",
    )


class UndoSettle(serializers.Serializer[Any]):
    answer = serializers.ChoiceField(
        choices=[(saga.UNDONE, "you have undone it yourself"), (saga.LEAVE, "it stays as it is")]
    )
    reason = Text(
        min_length=1,
        max_length=saga.REASON_LENGTH,
        help_text="Why; kept with your name and the time.",
    )


class UndoStep(serializers.ModelSerializer[Compensation]):
    """The undo of one call: where it stands, and why."""

    call_id = serializers.CharField()
    state = serializers.ChoiceField(choices=UNDO_STATE)
    state_label = serializers.CharField(source="shown.label", help_text="The state in words.")
    why = serializers.CharField(help_text="The reason in words.")
    requested_by = serializers.CharField(source="request.requested_by.username")
    is_by_itself = serializers.SerializerMethodField(
        help_text="Nobody asked for it: it followed from the Stop."
    )
    settled_by = serializers.SerializerMethodField(help_text="Who settled it by hand.")
    needs_person = serializers.BooleanField(read_only=True, help_text="It did not work, and waits.")

    class Meta:
        model = Compensation
        fields = (
            *("id", "call_id", "state", "state_label", "note", "reason", "why", "detail"),
            *("attempts", "next_attempt_at", "created_at", "ended_at"),
            *("requested_by", "is_by_itself"),
            *("settled_by", "settled_at", "settled_reason", "needs_person"),
        )
        read_only_fields = fields

    def get_is_by_itself(self, step: Compensation) -> bool:
        return step.request.stop_epoch is not None

    def get_settled_by(self, step: Compensation) -> str | None:
        return step.settled_by.get_username() if step.settled_by else None


class UndoItem(serializers.Serializer[Any]):
    """What undo would do with one call, and the latest undo of it, if there was any."""

    call_id = serializers.CharField()
    summary = serializers.CharField()
    code = serializers.ChoiceField(choices=FORESEEN)
    text = serializers.CharField(help_text="In words.")
    can_undo = serializers.BooleanField()
    undo = UndoStep(allow_null=True)


class UndoAnswer(serializers.Serializer[Any]):
    """Every call, in the order in which undo would go: what happened last is undone first."""

    run_id = serializers.CharField()
    is_under_way = serializers.BooleanField()
    items = UndoItem(many=True)


class UndoView(APIView):
    @extend_schema(operation_id="read_undo", tags=["undo"], responses={200: UndoAnswer, **OF_A_RUN})
    def get(self, request: Request, run_id: str) -> Response:
        """What undo would do with each call of the run, and what became of each undo so far."""
        return Response(_answer(seen(request, run_id)))

    @extend_schema(
        operation_id="request_undo",
        tags=["undo"],
        request=UndoCreate,
        responses={202: UndoAnswer, **ASKED},
    )
    def post(self, request: Request, run_id: str) -> Response:
        """Ask for the undo of some calls of a run, or of all that can be undone.

        What is undone, or is being undone, is not undone again: ask as often as you like.
        """
        run = _undone(request, run_id)
        wanted = valid(UndoCreate(data=request.data))["call_ids"]
        call_ids = _whatever_can_be(run) if wanted == ALL else wanted
        saga.request_undo(run.pk, by=request.user, call_ids=call_ids)
        return Response(_answer(run), status=status.HTTP_202_ACCEPTED)


class UndoStopView(APIView):
    @extend_schema(
        operation_id="stop_undo",
        tags=["undo"],
        request=None,
        responses={202: UndoAnswer, **ASKED},
    )
    def post(self, request: Request, run_id: str) -> Response:
        """Begin no further step. The one in flight finishes, and is not tried again."""
        run = _undone(request, run_id)
        saga.stop_undo(run.pk, by=request.user)
        return Response(_answer(run), status=status.HTTP_202_ACCEPTED)


class UndoSettleView(APIView):
    @extend_schema(
        operation_id="settle_undo",
        tags=["undo"],
        request=UndoSettle,
        responses={200: UndoStep, **OF_A_STEP},
    )
    def post(self, request: Request, step_id: str) -> Response:
        """Say what becomes of a call that could not be undone."""
        step = _step(request, step_id)
        asked = valid(UndoSettle(data=request.data))
        settled = saga.settle_by_hand(step.pk, by=request.user, **asked)
        return Response(UndoStep(settled).data)


class UndoRetryView(APIView):
    @extend_schema(
        operation_id="retry_undo",
        tags=["undo"],
        request=None,
        responses={202: UndoAnswer, **OF_A_STEP},
    )
    def post(self, request: Request, step_id: str) -> Response:
        """Ask anew, in your own name, for what did not work, was dropped or was left."""
        step = _step(request, step_id)
        saga.try_again(step.pk, by=request.user)
        return Response(_answer(step.call.run), status=status.HTTP_202_ACCEPTED)


def _undone(request: Request, run_id: str) -> Run:
    """The run, if the person may undo what it did."""
    run = seen(request, run_id)
    rights.require(request.user, run, allowed=rights.may_undo(request.user, run))
    return run


def _step(request: Request, step_id: str) -> Compensation:
    """The step, if the person may undo what its run did. Raises NotFound, NotAllowed."""
    step = Compensation.objects.filter(pk=step_id).select_related("call__run").first()
    if step is None:
        raise NotFound(step_id=step_id)
    run = step.call.run
    rights.require(request.user, run, allowed=rights.may_undo(request.user, run))
    return step


def _whatever_can_be(run: Run) -> list[str]:
    """The calls that “all” means: those that can be undone, are being, or have been."""
    steps = latest_steps(run)
    preview = saga.preview(run)
    found = [item.call.pk for item in preview if item.can_undo or stands(item, steps)]
    if not found:
        raise WrongState(_("There is nothing here that could be undone."), status=run.status)
    return found


def _answer(run: Run) -> dict[str, Any]:
    steps = latest_steps(run)
    items = [_item(item, steps.get(item.call.pk)) for item in saga.preview(run)]
    answer = {"run_id": run.pk, "is_under_way": bool(living_steps(run)), "items": items}
    return dict(UndoAnswer(answer).data)


def _item(item: PreviewItem, step: Compensation | None) -> dict[str, Any]:
    return {
        "call_id": item.call.pk,
        "summary": item.call.summary,
        "code": item.code,
        "text": item.text,
        "can_undo": item.can_undo,
        "undo": step,
    }
