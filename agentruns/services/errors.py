"""What can go wrong with services, said to the person at the terminal.

Plain English without gettext: these are said before Django and its translations are set up.
"""

from agentruns.errors import AgentrunsError


class ServiceError(AgentrunsError):
    """A service cannot be started, or does not answer; nothing was left running."""

    code = "service_error"
    status = 503


class PortInUse(ServiceError):
    """Somebody else listens on the port that was asked for."""

    code = "port_in_use"


class AlreadyUp(ServiceError):
    """A living stack works on this data folder already, and is left alone."""

    code = "already_up"
