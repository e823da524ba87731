"""What the views of every app's API share: the run that is asked for, its errors, and the body."""

from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from agentruns import rights
from agentruns.api import serializers as data
from agentruns.api.problems import CONTENT_TYPE
from agentruns.errors import NotFound
from agentruns.models import Run


def problems(**why: str) -> dict[Any, Any]:
    """The error responses of an operation: `_400="…"` documents what a 400 means here."""
    return {
        (int(code[1:]), CONTENT_TYPE): OpenApiResponse(data.Problem, text)
        for code, text in why.items()
    }


SIGNED_IN = problems(_401="Not signed in, or the token is not valid.")
OF_A_RUN = SIGNED_IN | problems(_404="There is no such run, or you may not see it.")


def seen(request: Request, run_id: str) -> Run:
    """The run, if the person may see it. Raises NotFound."""
    run = rights.visible_run(request.user, run_id, "owner")
    if run is None:
        raise NotFound(_("There is no such run, or you may not see it."), run_id=run_id)
    return run


def valid(serializer: Any, *, takes_any: bool = False) -> dict[str, Any]:
    """What the serializer was given, checked. Raises its errors; one for each member of a body that
    it does not know, too, unless it `takes_any`.
    """
    serializer.is_valid(raise_exception=True)
    given = serializer.initial_data
    is_body = not isinstance(given, QueryDict)
    if is_body and not takes_any and (unknown := given.keys() - serializer.fields.keys()):
        raise ValidationError(dict.fromkeys(unknown, _("There is no such member.")), "unknown")
    found: dict[str, Any] = serializer.validated_data
    return found
