"""What is shown where a page cannot be drawn: a few lines, which cost nothing."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agentruns import rights
from agentruns.api.errors import BodyTooLarge, BodyTooSlow
from agentruns.errors import DatabaseAway, NotFound, PagesBusy, TooBusy
from agentruns.models import ToolCall
from agentruns.page.run import TITLE_LENGTH, find
from agentruns.page.words import run_pill, shorten

INSTEAD = {
    each.code: each for each in (PagesBusy, TooBusy, DatabaseAway, BodyTooSlow, BodyTooLarge)
}


@login_required
@require_safe
@never_cache
def run_brief(request: HttpRequest, run_id: str) -> HttpResponse:
    """How a run stands, and Stop: of the same size, however much the run did."""
    run = find(run_id, request.user)
    if run is None:
        raise NotFound
    in_doubt = ToolCall.objects.filter(run=run, state="in_doubt").count()
    context = {
        "run": run,
        "title": shorten(run.goal, TITLE_LENGTH),
        "pill": run_pill(run, in_doubt=in_doubt),
        "can_stop": run.is_active and rights.may_stop(request.user, run),
    }
    return render(request, "agentruns/run_brief.html", context)


@require_safe
def unanswered(request: HttpRequest, code: str) -> HttpResponse:
    """In the place of a page that did not come, or was not even asked for (front.py)."""
    raise INSTEAD.get(code, NotFound)
