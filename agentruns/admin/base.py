"""Rows to read and not to touch."""

from django.db.models import Model
from django.http import HttpRequest
from unfold.admin import ModelAdmin


class ReadOnlyAdmin(ModelAdmin):
    """Rows that only services write: nobody adds, changes or deletes them by hand, superusers
    included. The database refuses most of it as well.
    """

    list_per_page = 50
    show_full_result_count = False  # these tables only grow

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
