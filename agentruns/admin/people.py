"""People, groups, sign-ins and tokens: other packages' admins, in the look of ours."""

from axes.admin import AccessAttemptAdmin as BaseAccessAttemptAdmin
from axes.admin import AccessFailureLogAdmin as BaseAccessFailureLogAdmin
from axes.admin import AccessLogAdmin as BaseAccessLogAdmin
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as BaseGroupAdmin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.models import Group, User
from knox.admin import AuthTokenAdmin as BaseAuthTokenAdmin
from knox.models import AuthToken
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

# Importing their admins has registered them.
for model in (User, Group, AccessAttempt, AccessFailureLog, AccessLog, AuthToken):
    admin.site.unregister(model)


@admin.register(User)
class UserAdmin(BaseUserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["username", "first_name", "last_name", "is_active", "is_staff", "last_login"]


@admin.register(Group)
class GroupAdmin(BaseGroupAdmin, ModelAdmin):
    """The group “reviewers” decides what waits for a person (agentruns/rights.py)."""


@admin.register(AccessAttempt)
class AccessAttemptAdmin(BaseAccessAttemptAdmin, ModelAdmin):
    pass


@admin.register(AccessFailureLog)
class AccessFailureLogAdmin(BaseAccessFailureLogAdmin, ModelAdmin):
    pass


@admin.register(AccessLog)
class AccessLogAdmin(BaseAccessLogAdmin, ModelAdmin):
    pass


@admin.register(AuthToken)
class AuthTokenAdmin(BaseAuthTokenAdmin, ModelAdmin):
    list_display = ["token_key", "user", "created", "expiry"]
