"""Undo: see, filter, try again, settle by hand with a reason; and the history of each step."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextareaWidget

from agentruns.admin.base import ReadOnlyAdmin
from agentruns.admin.columns import at_exactly, badge, moment, run_link
from agentruns.errors import AgentrunsError
from compensation import saga
from compensation.history import history_of
from compensation.models import Compensation
from compensation.queries import needs_person
from compensation.states import COMPENSATION, WITHOUT_EFFECT

AGAIN = "again"


class SettleForm(forms.Form):
    """What becomes of steps that did not work."""

    answer = forms.ChoiceField(
        label=_("What becomes of it?"),
        choices=[
            (AGAIN, _("Try it again")),
            (saga.UNDONE, _("I have undone it myself")),
            (saga.LEAVE, _("Leave it as it is")),
        ],
        widget=UnfoldAdminRadioSelectWidget,
    )
    reason = forms.CharField(
        label=_("Reason"),
        help_text=_("Kept with your name and the time. Not needed to try it again."),
        max_length=saga.REASON_LENGTH,
        required=False,
        widget=UnfoldAdminTextareaWidget,
    )

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = super().clean() or {}
        if found.get("answer") not in (None, AGAIN) and not found.get("reason"):
            self.add_error("reason", _("Say why."))
        return found


class NeedsPerson(admin.SimpleListFilter):
    title = _("needs a person")
    parameter_name = "needs_person"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("yes")), ("no", _("no"))]

    def queryset(self, request: HttpRequest, steps: QuerySet[Any]) -> QuerySet[Any]:
        waiting = needs_person().values("pk")
        if self.value() == "yes":
            return steps.filter(pk__in=waiting)
        return steps.exclude(pk__in=waiting) if self.value() == "no" else steps


@admin.register(Compensation)
class CompensationAdmin(ReadOnlyAdmin):
    state_badge = badge(COMPENSATION)
    run_link = run_link("call.run")
    created = moment("created_at", _("asked for"))
    ended = moment("ended_at", _("ended"))
    settled = moment("settled_at", _("when"))
    list_display = ["summary", "state_badge", "attempts", "requester", "run_link", "created"]
    list_filter = [
        NeedsPerson,
        "state",
        "reason",
        "call__tool",
        ("request__requested_by", admin.RelatedOnlyFieldListFilter),
        "created_at",
    ]
    list_select_related = ["call__run", "request__requested_by", "settled_by"]
    search_fields = ["id", "call__id", "call__run__id", "request__requested_by__username"]
    date_hierarchy = "created_at"
    actions = ["try_again", "settle_selected"]
    actions_detail = ["settle_one"]
    fieldsets = [
        (None, {"fields": ["summary", "state_words", "note", "why", "detail"]}),
        (_("Where it belongs"), {"fields": ["run_page", "run_link", "call_link", "id"]}),
        (_("Who and when"), {"fields": ["requester", "created", "attempts", "ended"]}),
        (_("Settled by hand"), {"fields": ["settled_by", "settled", "settled_reason"]}),
        (_("History"), {"fields": ["history"]}),
    ]
    readonly_fields = [name for _title, each in fieldsets for name in each["fields"]]

    @display(description=_("call"))
    def summary(self, step: Compensation) -> str:
        return step.call.summary

    @display(description=_("asked for by"), ordering="request__requested_by")
    def requester(self, step: Compensation) -> str:
        name = step.request.requested_by.get_username()
        if step.request.stop_epoch is None:
            return name
        return str(_("%(name)s (by itself, after the Stop)") % {"name": name})

    @display(description=_("state"))
    def state_words(self, step: Compensation) -> str:
        return str(step.shown.label)

    @display(description=_("what stands in its way"))
    def why(self, step: Compensation) -> str:
        return step.why or "–"

    @display(description=_("page of the run"))
    def run_page(self, step: Compensation) -> SafeString:
        place = f"{reverse('run', args=[step.call.run_id])}#call-{step.call_id}"
        return format_html('<a class="underline" href="{}">{}</a>', place, step.call.run_id)

    @display(description=_("call"))
    def call_link(self, step: Compensation) -> SafeString:
        address = reverse("admin:agentruns_toolcall_change", args=[step.call_id])
        return format_html('<a class="underline" href="{}">{}</a>', address, step.call_id)

    @display(description=_("what happened, and when"))
    def history(self, step: Compensation) -> SafeString:
        lines = ((at_exactly(line.at), line.what, line.who, line.why) for line in history_of(step))
        row = '<li class="py-1"><b>{}</b> {} <span class="opacity-75">({})</span> {}</li>'
        return format_html("<ol>{}</ol>", format_html_join("", row, lines))

    # --- What a person decides --------------------------------------------------------------------
    def has_try_again_permission(self, request: HttpRequest) -> bool:
        """Whether the person may undo this very call is for the saga to say."""
        return self.has_view_permission(request)

    def has_settle_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Of one step: whether there is anything to decide about it."""
        if not self.has_view_permission(request):
            return False
        if object_id is None:
            return True
        steps = Compensation.objects.filter(pk=unquote(str(object_id)), state__in=WITHOUT_EFFECT)
        return steps.exists()

    @action(description=_("Try again what was given up"), permissions=["try_again"])
    def try_again(self, request: HttpRequest, steps: QuerySet[Compensation]) -> None:
        for step in steps.select_related("call"):
            self._decide(request, step, AGAIN, "")

    @action(description=_("Settle by hand …"), permissions=["settle"])
    def settle_selected(
        self, request: HttpRequest, steps: QuerySet[Compensation]
    ) -> HttpResponseRedirect:
        return self._to_settle([step.pk for step in steps])

    @action(description=_("Try again or settle …"), permissions=["settle"], url_path="decide")
    def settle_one(self, request: HttpRequest, object_id: str) -> HttpResponseRedirect:
        return self._to_settle([unquote(object_id)])

    def get_urls(self) -> list[URLPattern]:
        """One more: the form on which one step or several are decided."""
        view = self.admin_site.admin_view(self.settle_view)
        return [path("settle/", view, name="compensation_compensation_settle"), *super().get_urls()]

    def settle_view(self, request: HttpRequest) -> HttpResponse:
        """Ask what becomes of the steps that the address names; then do it."""
        form = SettleForm(request.POST or None)
        wanted = (request.POST if request.method == "POST" else request.GET).getlist("step")
        steps = Compensation.objects.filter(pk__in=wanted).select_related("call")
        back = reverse("admin:compensation_compensation_changelist")
        if not steps or not self.has_view_permission(request):
            return HttpResponseRedirect(back)
        if request.method == "POST" and form.is_valid():
            for step in steps:
                self._decide(request, step, **form.cleaned_data)
            return HttpResponseRedirect(back)
        context = self.admin_site.each_context(request) | {
            "title": _("What could not be undone"),
            "opts": self.model._meta,
            "form": form,
            "steps": steps,
            "back": back,
        }
        return TemplateResponse(request, "compensation/settle.html", context)

    def _to_settle(self, step_ids: list[str]) -> HttpResponseRedirect:
        address = reverse("admin:compensation_compensation_settle")
        return HttpResponseRedirect(f"{address}?{'&'.join(f'step={pk}' for pk in step_ids)}")

    def _decide(self, request: HttpRequest, step: Compensation, answer: str, reason: str) -> None:
        """Do it for one step, and say what came of it."""
        try:
            if answer == AGAIN:
                saga.try_again(step.pk, by=request.user)
            else:
                saga.settle_by_hand(step.pk, by=request.user, answer=answer, reason=reason)
        except AgentrunsError as error:
            self.message_user(request, f"“{step.call.summary}”: {error.sentence}", messages.ERROR)
        else:
            said = {
                AGAIN: _("“%(call)s” will be tried again."),
                saga.UNDONE: _("“%(call)s” is undone, by your word."),
                saga.LEAVE: _("“%(call)s” is left as it is."),
            }[answer]
            self.message_user(request, said % {"call": step.call.summary}, messages.SUCCESS)
