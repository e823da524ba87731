"""Every error that a person or a program is told: a code, a sentence, an HTTP status, and data.

A wrong state is 409; a missing right is 403; an unknown id is 404; bad input is 400 or 422.
"""

from typing import Any

from django.utils.translation import gettext_lazy as _


class AgentrunsError(Exception):
    """The base of all our errors. `code` is for programs, `sentence` for people."""

    code = "error"
    status = 500
    sentence: Any = _("Something went wrong.")

    def __init__(self, sentence: Any = None, **data: Any) -> None:
        self.sentence = sentence or type(self).sentence
        self.data = data
        super().__init__(str(self.sentence))


class BadInput(AgentrunsError):
    code = "bad_input"
    status = 400
    sentence = _("That cannot be used as it is.")


class NotAllowed(AgentrunsError):
    code = "not_allowed"
    status = 403
    sentence = _("You have no right to do that.")


class NotFound(AgentrunsError):
    code = "not_found"
    status = 404
    sentence = _("There is nothing here by that name, or it is not yours to see.")


class OldLink(AgentrunsError):
    """A sign-in link of a demo that was started anew since, or none at all."""

    code = "old_link"
    status = 410
    sentence = _(
        "A sign-in link holds until the demo is started again. The terminal that it was started in "
        "shows the new ones."
    )


class WrongState(AgentrunsError):
    """The thing has moved on since; nothing was changed."""

    code = "wrong_state"
    status = 409
    sentence = _("That is no longer possible: things have moved on.")


class TooManyRuns(AgentrunsError):
    """The person has as many runs as one may have, or starts them too fast. None was started."""

    code = "too_many_runs"
    status = 429
    sentence = _("You have too many runs under way.")


class DatabaseAway(AgentrunsError):
    """It was away before the change, or went away in the middle of its commit: nobody knows."""

    code = "database_away"
    status = 503
    sentence = _(
        "The database cannot be reached right now, so it is not known whether that arrived. "
        "Try again in a moment."
    )


class TooBusy(AgentrunsError):
    """It waited for its turn for too long, or too many of the same asker did."""

    code = "too_busy"
    status = 503
    sentence = _("Too much is asked for here at once, so this was not done. Try again in a moment.")


class PagesBusy(AgentrunsError):
    """What draws the pages did not answer in time; Stop does not need it."""

    code = "pages_busy"
    status = 503
    sentence = _(
        "The pages do not answer right now, so it is not known whether that arrived. "
        "Stop still works. Try again in a moment."
    )
