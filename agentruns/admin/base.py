"""Rows to read and not to touch."""

from typing import Any

from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.admin import ModelAdmin

from tools.texts import spelt_out


class ReadOnlyAdmin(ModelAdmin):
    """Rows that only services write: nobody adds, changes or deletes them by hand, superusers
    included. The database refuses most of it as well.
    """

    list_per_page = 50
    show_full_result_count = False  # these tables only grow

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _seen_through(super().changelist_view(request, *args, **kwargs))

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _seen_through(super().changeform_view(request, *args, **kwargs))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def _seen_through(response: HttpResponse) -> HttpResponse:
    """The page with whatever in it cannot be seen spelt out: what models and outside systems wrote
    stands in many of its columns.
    """

    def spell(drawn: HttpResponse) -> None:
        drawn.content = spelt_out(drawn.content.decode()).encode()

    if isinstance(response, TemplateResponse):
        response.add_post_render_callback(spell)
    return response
