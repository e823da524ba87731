"""What a tool says of its own risks, in words. Nobody has checked it, and nothing depends on it."""

from django.utils.translation import gettext as _

from tools.contract import Data


def in_words(hints: Data) -> list[str]:
    """Each thing that it says, as a few words; empty if it says nothing."""
    words = {
        ("readOnlyHint", True): _("only reads"),
        ("readOnlyHint", False): _("changes something"),
        ("destructiveHint", True): _("may destroy something"),
        ("destructiveHint", False): _("destroys nothing"),
        ("idempotentHint", True): _("twice is the same as once"),
        ("idempotentHint", False): _("twice is not the same as once"),
        ("openWorldHint", True): _("reaches out to others"),
        ("openWorldHint", False): _("stays within its own system"),
    }
    said = [text for (hint, value), text in words.items() if hints.get(hint) is value]
    if method := hints.get("method"):
        said.append(_("is a %(method)s request") % {"method": method})
    return said
