"""Undo, to read; what was given up can be asked for again."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action, display

from agentruns.admin.base import ReadOnlyAdmin
from agentruns.admin.columns import badge, moment, run_link
from agentruns.errors import AgentrunsError
from compensation import saga
from compensation.models import Compensation
from compensation.states import COMPENSATION


@admin.register(Compensation)
class CompensationAdmin(ReadOnlyAdmin):
    state_badge = badge(COMPENSATION)
    run_link = run_link("call.run")
    created = moment("created_at", _("asked for"))
    list_display = ["summary", "state_badge", "attempts", "requester", "run_link", "created"]
    list_filter = ["state", "reason", "call__tool"]
    list_select_related = ["call__run", "request__requested_by"]
    search_fields = ["id", "call__id", "call__run__id", "request__requested_by__username"]
    date_hierarchy = "created_at"
    actions = ["try_again"]

    @display(description=_("call"))
    def summary(self, step: Compensation) -> str:
        return step.call.summary

    @display(description=_("asked for by"), ordering="request__requested_by")
    def requester(self, step: Compensation) -> str:
        return step.request.requested_by.get_username()

    def has_try_again_permission(self, request: HttpRequest) -> bool:
        """Whether the person may undo this very call is for the saga to say."""
        return self.has_view_permission(request)

    @action(description=_("Try again what was given up"), permissions=["try_again"])
    def try_again(self, request: HttpRequest, steps: QuerySet[Compensation]) -> None:
        for step in steps.select_related("call"):
            try:
                saga.try_again(step.pk, by=request.user)
            except AgentrunsError as error:
                self.message_user(request, str(error.sentence), messages.ERROR)
            else:
                done = _("“%(call)s” will be tried again.") % {"call": step.call.summary}
                self.message_user(request, done, messages.SUCCESS)
