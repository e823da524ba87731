"""My runs, and a new one."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from agentruns.errors import TooManyRuns
from agentruns.forms import NewRunForm, new_key
from agentruns.models import Agent, Run
from agentruns.models.agent import DEMO
from agentruns.page import workers
from agentruns.page.choices import Choice, choices
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
    found = choices()
    agents = [choice.agent for choice in found]
    if request.method != "POST":
        initial = {
            "agent": request.GET.get("agent") or _first(agents),
            "goal": request.GET.get("goal", ""),
            "key": new_key(),
        }
        return _form(request, found, NewRunForm(initial=initial, agents=agents))
    if "example" in request.POST:
        initial = _with_example(request.POST, agents)
        return _form(request, found, NewRunForm(initial=initial, agents=agents))
    form = NewRunForm(request.POST, agents=agents)
    if not form.is_valid():
        return _form(request, found, form, status=400)
    try:
        run_id = _start_once(request.user, form)
    except TooManyRuns as error:
        form.add_error(None, str(error.sentence))
        return _form(request, found, form, status=error.status)
    return redirect("run", run_id=run_id)


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


def _with_example(typed: QueryDict, agents: list[Agent]) -> dict[str, str]:
    """An agent with its example of a goal, ready to be started or changed; what somebody wrote
    themselves stays in its place.
    """
    slug, goal = typed.get("example", ""), typed.get("goal", "")
    examples = {agent.pk: agent.example_goal for agent in agents}
    if not goal.strip() or goal in examples.values():
        goal = examples.get(slug, goal)
    return {"agent": slug, "goal": goal, "key": typed.get("key") or new_key()}


def _first(agents: list[Agent]) -> str:
    return agents[0].pk if agents else ""


def _form(
    request: HttpRequest, found: list[Choice], form: NewRunForm, *, status: int = 200
) -> HttpResponse:
    goal, example = form["goal"].value(), request.POST.get("example")
    context = {
        "form": form,
        "choices": found,
        "chosen": form["agent"].value(),
        "is_demo": any(choice.agent.model.startswith(DEMO) for choice in found),
        "is_kept": example and goal not in [choice.agent.example_goal for choice in found],
    }
    return render(request, "agentruns/new_run.html", context, status=status)
