"""One run: its page, Stop and pause, decisions, answers, undo, and going on after a stop.

Everything works without JavaScript.
"""

from contextlib import suppress

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from agentruns import rights
from agentruns.errors import BadInput, NotFound, WrongState
from agentruns.forms import frozen_chosen, limits_typed
from agentruns.models import Run, ToolCall
from agentruns.page.preview import preview_of
from agentruns.page.run import TOP, build, find, sections
from agentruns.postgresql.snapshot import snapshot
from agentruns.protocol.budget import raise_budget
from agentruns.protocol.pause import pause_run, unpause_run
from agentruns.protocol.resume import resume_run
from agentruns.protocol.stop import request_stop
from agentruns.protocol.withhold import withhold_call
from compensation.models import Compensation
from compensation.saga import request_undo, settle_by_hand, stop_undo
from review.services import answer_doubt, decide, look_up_again


@login_required
@require_safe
def run(request: HttpRequest, run_id: str) -> HttpResponse:
    """The page of the run, complete as the ledger has it now."""
    with snapshot():
        page = build(_seen(request, run_id), request.user)
        drawn = sections(page, get_token(request))
    context = {
        "page": page,
        "run": page.run,
        "is_live": True,
        "top": mark_safe("".join(drawn[name] for name in TOP)),  # noqa: S308  (our templates)
        "body": mark_safe("".join(drawn[name] for name in page.order)),  # noqa: S308
    }
    return render(request, "agentruns/run.html", context)


@login_required
@require_POST
def stop(request: HttpRequest, run_id: str) -> HttpResponse:
    """Stop it. Pressed twice, late or at once with others: the page tells the one truth.

    A script that sends it (static/agentruns/stop.js) is told that it got through, and no more:
    what comes of it is the page's to tell.
    """
    run = _steered(request, run_id)
    signal = "user" if run.owner_id == request.user.pk else "admin"
    request_stop(run.pk, by=request.user, signal=signal)
    return HttpResponse(status=204) if "HX-Request" in request.headers else _back(run.pk)


@login_required
@require_POST
def pause(request: HttpRequest, run_id: str) -> HttpResponse:
    """Let nothing new start. Too late, the page tells how it ended."""
    run = _steered(request, run_id)
    with suppress(WrongState):
        pause_run(run.pk, by=request.user)
    return _back(run.pk)


@login_required
@require_POST
def unpause(request: HttpRequest, run_id: str) -> HttpResponse:
    """Let a paused run go on. Pressed twice, it goes on once."""
    run = _steered(request, run_id)
    with suppress(WrongState):
        unpause_run(run.pk, by=request.user)
    return _back(run.pk)


@login_required
@require_POST
def resume(request: HttpRequest, run_id: str) -> HttpResponse:
    """Let a stopped run go on, with what was held back or without it. Pressed twice: once; from
    a page that shows an earlier stop: not.
    """
    run = _steered(request, run_id)
    frozen = frozen_chosen(run, request.POST.get("frozen", ""))
    shown = request.POST.get("epoch", "")
    if shown and not (shown.isascii() and shown.isdecimal() and len(shown) < 10):
        raise BadInput(field="epoch")
    epoch = int(shown) if shown else None
    try:
        resume_run(run.pk, by=request.user, frozen=frozen, epoch=epoch)
    except WrongState:
        if not _seen(request, run_id).is_active:
            raise
    return _back(run.pk)


@login_required
@require_POST
def budget(request: HttpRequest, run_id: str) -> HttpResponse:
    """Raise the limits that the form names."""
    run = _steered(request, run_id)
    raise_budget(run.pk, by=request.user, **limits_typed(request.POST))
    return _back(run.pk)


@login_required
@require_POST
def decide_call(request: HttpRequest, run_id: str, call_id: str) -> HttpResponse:
    """Approve or reject exactly what the page showed."""
    decide(
        _call(request, run_id, call_id).pk,
        by=request.user,
        verdict=request.POST.get("verdict", ""),
        digest=request.POST.get("digest", ""),
        reason=request.POST.get("reason", ""),
    )
    return _back(run_id, f"call-{call_id}")


@login_required
@require_POST
def answer_call(request: HttpRequest, run_id: str, call_id: str) -> HttpResponse:
    """Say what became of a call in doubt."""
    answer_doubt(
        _call(request, run_id, call_id).pk,
        by=request.user,
        answer=request.POST.get("answer", ""),
        evidence=request.POST.get("evidence", ""),
    )
    return _back(run_id, f"call-{call_id}")


@login_required
@require_POST
def look_up_call(request: HttpRequest, run_id: str, call_id: str) -> HttpResponse:
    """Have a call in doubt looked up once more."""
    look_up_again(_call(request, run_id, call_id).pk, by=request.user)
    return _back(run_id, f"call-{call_id}")


@login_required
@require_POST
def withhold(request: HttpRequest, run_id: str, call_id: str) -> HttpResponse:
    """Take back a call that waits to be sent."""
    _steered(request, run_id)
    withhold_call(_call(request, run_id, call_id).pk, by=request.user)
    return _back(run_id, f"call-{call_id}")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def undo(request: HttpRequest, run_id: str) -> HttpResponse:
    """First what undo would do with each ticked action; then, confirmed, do it."""
    run = _seen(request, run_id)
    rights.require(request.user, run, allowed=rights.may_undo(request.user, run))
    if request.method == "POST":
        request_undo(run.pk, by=request.user, call_ids=request.POST.getlist("call"))
        return _back(run.pk, "undo-progress")
    preview = preview_of(run, request.GET.getlist("call"))
    return render(request, "agentruns/undo.html", {"run": run, "preview": preview})


@login_required
@require_POST
def undo_stop(request: HttpRequest, run_id: str) -> HttpResponse:
    """Begin nothing more of the undo. Too late, or twice: the page tells what was undone."""
    stop_undo(_seen(request, run_id).pk, by=request.user)
    return _back(run_id, "undo-progress")


@login_required
@require_POST
def undo_settle(request: HttpRequest, run_id: str, step_id: str) -> HttpResponse:
    """A person's word on what could not be undone, with a reason."""
    run = _seen(request, run_id)
    step = Compensation.objects.filter(pk=step_id, call__run=run).first()
    if step is None:
        raise NotFound
    settle_by_hand(
        step.pk,
        by=request.user,
        answer=request.POST.get("answer", ""),
        reason=request.POST.get("reason", ""),
    )
    return _back(run_id, f"call-{step.call_id}")


def _steered(request: HttpRequest, run_id: str) -> Run:
    """The run, if this person may stop it, and so hold it and let it go on too."""
    run = _seen(request, run_id)
    rights.require(request.user, run, allowed=rights.may_stop(request.user, run))
    return run


def _seen(request: HttpRequest, run_id: str) -> Run:
    """The run, if this person may know of it. Raises NotFound."""
    found = find(run_id, request.user)
    if found is None:
        raise NotFound
    return found


def _call(request: HttpRequest, run_id: str, call_id: str) -> ToolCall:
    call = ToolCall.objects.filter(pk=call_id, run=_seen(request, run_id)).first()
    if call is None:
        raise NotFound
    return call


def _back(run_id: str, place: str = "") -> HttpResponseRedirect:
    """To the run's page, which tells what came of it."""
    anchor = f"#{place}" if place else ""
    return HttpResponseRedirect(reverse("run", args=[run_id]) + anchor)
