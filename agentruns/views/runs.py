"""My runs, and a new one."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from agentruns.forms import NewRunForm, new_key
from agentruns.models import Agent, Run
from agentruns.page import workers
from agentruns.page.choices import choices
from agentruns.page.listing import listing
from agentruns.protocol.start import start_run


@login_required
@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """The list, filtered and paged."""
    found = listing(
        request.user,
        scope=request.GET.get("scope", ""),
        name=request.GET.get("show", ""),
        page=request.GET.get("page", ""),
    )
    context = {"listing": found, "is_without_workers": workers.seem_away()}
    return render(request, "agentruns/runs.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new_run(request: HttpRequest) -> HttpResponse:
    """Choose an agent, write a goal, start."""
    if request.method != "POST":
        chosen = request.GET.get("agent", "")
        return _form(request, NewRunForm(initial={"agent": chosen, "key": new_key()}))
    if "example" in request.POST:
        return _form(request, _with_example(request.POST.get("example", ""), request.POST))
    form = NewRunForm(request.POST)
    if not form.is_valid():
        return _form(request, form, status=400)
    return redirect("run", run_id=_start_once(request.user, form))


def _start_once(user: Any, form: NewRunForm) -> str:
    """Start the run that the form stands for; sent twice, it is the same one."""
    run_id = form.run_id(user)
    if not Run.objects.filter(pk=run_id).exists():
        data = form.cleaned_data
        try:
            start_run(owner=user, agent=data["agent"], goal=data["goal"], run_id=run_id)
        except IntegrityError:
            # The other click was faster between our look and our write.
            if not Run.objects.filter(pk=run_id).exists():
                raise
    return run_id


def _with_example(slug: str, typed: Any) -> NewRunForm:
    """The form with the example of an agent filled in, ready to be started or changed."""
    agent = Agent.objects.filter(pk=slug, is_listed=True).first()
    goal = agent.example_goal if agent else typed.get("goal", "")
    key = typed.get("key") or new_key()
    return NewRunForm(initial={"agent": slug, "goal": goal, "key": key})


def _form(request: HttpRequest, form: NewRunForm, *, status: int = 200) -> HttpResponse:
    found = choices()
    chosen = form["agent"].value() or (found[0].agent.pk if len(found) == 1 else "")
    context = {"form": form, "choices": found, "chosen": chosen}
    return render(request, "agentruns/new_run.html", context, status=status)
