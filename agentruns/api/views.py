"""The REST API's views: parse, call one verb or query, render."""

from typing import Any

from django.contrib.auth import authenticate
from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiParameter, extend_schema
from knox.models import AuthToken
from rest_framework import generics, serializers, status
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agentruns import rights
from agentruns.api import serializers as data
from agentruns.api.authentication import TokenAuthentication
from agentruns.api.common import OF_A_RUN, SIGNED_IN, problems, seen, valid
from agentruns.api.errors import NotSignedIn
from agentruns.api.idempotency import must_be_at_work, start_once
from agentruns.api.problems import problem_response
from agentruns.errors import BadInput, NotFound
from agentruns.forms import frozen_chosen
from agentruns.models import Agent, LedgerEvent, Run
from agentruns.page.people import names_of
from agentruns.protocol.budget import raise_budget
from agentruns.protocol.pause import pause_run, unpause_run
from agentruns.protocol.resume import resume_run
from agentruns.protocol.start import start_run
from agentruns.protocol.stop import request_stop
from agentruns.queries import snapshot
from agentruns.states import RUN
from agentruns.throttle import remember

STEERED = OF_A_RUN | problems(
    _400="The body cannot be used.",
    _403="You may see the run, but not steer it.",
    _409="The run is not in a state for that.",
)


@csrf_exempt
def unknown_path(request: HttpRequest) -> JsonResponse:
    """Whatever else is asked for under /api/."""
    return problem_response(NotFound())


class TokenView(APIView):
    """Sign in and out, for programs."""

    authentication_classes = (TokenAuthentication,)

    # To get a token nobody needs one, and an old one says nothing about who asks.
    def get_authenticators(self) -> list[Any]:
        is_open = self.request is not None and self.request.method == "POST"
        return [] if is_open else super().get_authenticators()

    def get_permissions(self) -> Any:
        return [] if self.request.method == "POST" else super().get_permissions()

    @extend_schema(
        operation_id="create_token",
        tags=["auth"],
        auth=[],
        request=data.TokenRequest,
        responses={
            200: data.TokenAnswer,
            **problems(
                _400="Something is missing.",
                _401="The name or the password is wrong.",
                _429="Too many failed attempts.",
            ),
        },
    )
    def post(self, request: Request) -> Response:
        """Exchange a user name and a password for a token."""
        asked = valid(data.TokenRequest(data=request.data))
        user = authenticate(request._request, **asked)
        if user is None:
            raise NotSignedIn(_("The user name or the password is wrong."))
        remember(request._request, user.get_username())
        kept, token = AuthToken.objects.create(user=user)
        return Response(data.TokenAnswer({"token": token, "expiry": kept.expiry}).data)

    @extend_schema(operation_id="delete_token", tags=["auth"], responses={204: None, **SIGNED_IN})
    def delete(self, request: Request) -> Response:
        """Give back the token that this request is sent with. It is no good from then on."""
        assert isinstance(request.auth, AuthToken)
        request.auth.delete()
        return Response(status=status.HTTP_204_NO_CONTENT)


class RunFilter(filters.FilterSet):
    status = filters.MultipleChoiceFilter(choices=RUN.choices(), help_text="One or more.")
    agent = filters.CharFilter(field_name="agent_id")
    thread = filters.CharFilter(field_name="thread_id")
    parent = filters.CharFilter(field_name="parent_id", help_text="Runs that this one started.")


class RunsQuery(serializers.Serializer[Any]):
    limit = serializers.IntegerField(required=False, default=50, min_value=1, max_value=200)
    offset = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=2**63 - 1, help_text="How many to skip."
    )


class RunPages(LimitOffsetPagination):
    default_limit = 50

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        """Raises ValidationError, where the class above it would take a guess."""
        valid(RunsQuery(data=request.query_params))
        return super().paginate_queryset(queryset, request, view)


class RunsView(generics.ListAPIView[Run]):
    """Runs: those that you may see, and a new one."""

    serializer_class = data.RunSummary
    pagination_class = RunPages
    filter_backends = (filters.DjangoFilterBackend,)
    filterset_class = RunFilter
    queryset = Run.objects.all()

    def get_queryset(self) -> Any:
        runs = rights.visible_runs(self.request.user).select_related("owner")
        return runs.order_by("-created_at", "-pk")

    @extend_schema(
        operation_id="list_runs",
        tags=["runs"],
        parameters=[RunsQuery],
        responses={
            200: data.RunSummary(many=True),
            **SIGNED_IN,
            **problems(_400="A filter, “limit” or “offset” cannot be used."),
        },
    )
    def get(self, request: Request) -> Response:
        """List the runs that you may see, the newest first."""
        return self.list(request)

    @extend_schema(
        operation_id="start_run",
        tags=["runs"],
        request=data.RunCreate,
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                str,
                OpenApiParameter.HEADER,
                description="Repeat a request with the same key: there is one run, and the same "
                "answer each time.",
            )
        ],
        responses={
            201: data.RunDetail,
            **SIGNED_IN,
            **problems(
                _400="The agent, the goal or the parent cannot be used.",
                _409="The parent has ended, or is stopping.",
                _422="The key was used for another request.",
                _429="You have too many runs under way, or started too many within a minute.",
            ),
        },
    )
    def post(self, request: Request) -> Response:
        """Start a run of an agent."""
        asked = valid(data.RunCreate(data=request.data))
        agent = Agent.objects.filter(slug=asked["agent"], is_listed=True).first()
        if agent is None:
            raise BadInput(_("There is no agent by that name."), field="agent")
        wanted = {"owner": request.user, "agent": agent, "goal": asked["goal"]}
        wanted["parent_id"] = asked["parent"] or None
        key = request.headers.get("Idempotency-Key")
        if key is None:
            must_be_at_work(wanted["parent_id"], request.user)
            answer = _detail(start_run(**wanted))
        else:
            answer = start_once(**wanted, key=key, answer_of=_detail)
        headers = {"Location": answer["urls"]["self"]}
        return Response(answer, status=status.HTTP_201_CREATED, headers=headers)


class RunView(APIView):
    @extend_schema(
        operation_id="read_run", tags=["runs"], responses={200: data.RunDetail, **OF_A_RUN}
    )
    def get(self, request: Request, run_id: str) -> Response:
        """A run: its status, its latest stop, and every call, in groups that add up."""
        return Response(_detail(seen(request, run_id)))


class CancelView(APIView):
    @extend_schema(
        operation_id="stop_run",
        tags=["runs"],
        request=data.CancelRequest,
        responses={
            202: data.StopAnswer,
            **OF_A_RUN,
            **problems(
                _400="“reason” or “pending” cannot be used.",
                _403="You may see the run, but not stop it, or not take it over.",
            ),
        },
    )
    def post(self, request: Request, run_id: str) -> Response:
        """Stop a run. Once this has answered, no new effect of it is possible.

        Idempotent: ask as often as you like, you get the same answer each time. A run that had
        ended before answers 202 too, and says that completion won. Members that are not known are
        ignored, and of a reason that is too long its beginning is kept: nothing like that keeps a
        Stop from getting through.
        """
        run = seen(request, run_id)
        rights.require(request.user, run, allowed=rights.may_take_over(request.user, run))
        asked = valid(data.CancelRequest(data=_said(request)), takes_any=True)
        if asked["signal"] != "handoff":
            rights.require(request.user, run, allowed=rights.may_stop(request.user, run))
        stop = request_stop(run.pk, by=request.user, **asked)
        return Response(data.stop_body(stop), status=status.HTTP_202_ACCEPTED)


class PauseView(APIView):
    @extend_schema(
        operation_id="pause_run",
        tags=["runs"],
        request=data.PauseRequest,
        responses={200: data.RunDetail, **STEERED},
    )
    def post(self, request: Request, run_id: str) -> Response:
        """Hold a run and those that it started: nothing new starts. What is under way reports.

        Calls that have not started stay as they are. A run that is paused already stays so.
        """
        run = _steered(request, run_id)
        asked = valid(data.PauseRequest(data=_said(request)))
        pause_run(run.pk, by=request.user, **asked)
        return Response(_detail(seen(request, run_id)))


class UnpauseView(APIView):
    @extend_schema(
        operation_id="unpause_run",
        tags=["runs"],
        request=None,
        responses={200: data.RunDetail, **STEERED},
    )
    def post(self, request: Request, run_id: str) -> Response:
        """Let a paused run, and those that it started, go on from where they are."""
        run = _steered(request, run_id)
        unpause_run(run.pk, by=request.user)
        return Response(_detail(seen(request, run_id)))


class ResumeView(APIView):
    @extend_schema(
        operation_id="resume_run",
        tags=["runs"],
        request=data.ResumeRequest,
        responses={
            200: data.RunDetail,
            **STEERED,
            **problems(_429="You have too many runs under way."),
        },
    )
    def post(self, request: Request, run_id: str) -> Response:
        """Let a stopped run go on: in a new epoch, under a new grant, with all that is known.

        Not as long as anything is in doubt, or its budget is used up, or its parent does not act.
        """
        run = _steered(request, run_id)
        asked = valid(data.ResumeRequest(data=request.data))
        frozen = frozen_chosen(run, asked["frozen"])
        resume_run(run.pk, by=request.user, frozen=frozen, epoch=asked.get("epoch"))
        return Response(_detail(seen(request, run_id)))


class BudgetView(APIView):
    @extend_schema(
        operation_id="raise_budget",
        tags=["runs"],
        request=data.BudgetRequest,
        responses={200: data.RunDetail, **STEERED},
    )
    def post(self, request: Request, run_id: str) -> Response:
        """Set limits anew. A run that waits for its budget goes on once none is reached."""
        run = _steered(request, run_id)
        raise_budget(run.pk, by=request.user, **valid(data.BudgetRequest(data=request.data)))
        return Response(_detail(seen(request, run_id)))


class LedgerView(APIView):
    @extend_schema(
        operation_id="read_ledger",
        tags=["runs"],
        parameters=[data.LedgerQuery],
        responses={
            200: data.LedgerPage,
            **OF_A_RUN,
            **problems(_400="“after” or “limit” cannot be used."),
        },
    )
    def get(self, request: Request, run_id: str) -> Response:
        """The run's facts, in order: who did what, when, each chained to the one before."""
        run = seen(request, run_id)
        asked = valid(data.LedgerQuery(data=request.query_params))
        found = LedgerEvent.objects.filter(run=run, seq__gt=asked["after"]).order_by("seq")
        events = list(found[: asked["limit"]])
        names = names_of(event.actor for event in events)
        page = {
            "events": events,
            "last_seq": events[-1].seq if events else asked["after"],
            "head_seq": run.ledger_seq,
        }
        return Response(data.LedgerPage(page, context={"names": names}).data)


class SnapshotView(APIView):
    @extend_schema(
        operation_id="read_snapshot", tags=["runs"], responses={200: data.Snapshot, **OF_A_RUN}
    )
    def get(self, request: Request, run_id: str) -> Response:
        """Where the run stands: what is done, what is not, what cannot be undone."""
        return Response(data.Snapshot(snapshot(seen(request, run_id))).data)


def _steered(request: Request, run_id: str) -> Run:
    """The run, if the person may stop it, and so hold it and let it go on too."""
    run = seen(request, run_id)
    rights.require(request.user, run, allowed=rights.may_stop(request.user, run))
    return run


def _said(request: Request) -> Any:
    """The body of what needs none: `null` is none, too."""
    return {} if request.data is None else request.data


def _detail(run: Run) -> dict[str, Any]:
    return dict(data.RunDetail(run).data)
