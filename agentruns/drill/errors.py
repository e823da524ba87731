"""What keeps a drill from being played. What a drill finds out is in its report instead."""

from django.utils.translation import gettext_lazy as _

from agentruns.errors import AgentrunsError


class DrillError(AgentrunsError):
    """The drill could not be played as asked; its run, if there was one, has been stopped."""

    code = "drill_not_played"
    status = 400
    sentence = _("The drill could not be played.")


class PointMissed(DrillError):
    """The run never came to one of the points."""

    code = "point_missed"
