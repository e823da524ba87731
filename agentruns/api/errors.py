"""Errors that only the API has: about the request itself."""

from django.utils.translation import gettext_lazy as _

from agentruns.errors import AgentrunsError


class BodyTooLarge(AgentrunsError):
    code = "body_too_large"
    status = 413
    sentence = _("The request's body is larger than this server takes.")


class BodyTooSlow(AgentrunsError):
    code = "body_too_slow"
    status = 408
    sentence = _("That did not arrive whole in time, so nothing was done. Try again.")


class MalformedBody(AgentrunsError):
    code = "malformed_body"
    status = 400
    sentence = _("The request's body cannot be read.")


class OtherCharset(AgentrunsError):
    code = "unsupported_media_type"
    status = 415
    sentence = _("What is sent here has to be in UTF-8.")


class NotSignedIn(AgentrunsError):
    code = "not_signed_in"
    status = 401
    sentence = _("Sign in first, or send a valid token.")


class TooManyAttempts(AgentrunsError):
    code = "too_many_attempts"
    status = 429
    sentence = _("Too many failed attempts. Try again in a while.")


class KeyReused(AgentrunsError):
    code = "idempotency_key_reused"
    status = 422
    sentence = _("This Idempotency-Key was used for another request already. Use a new one.")
