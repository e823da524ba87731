"""Template tags and filters of the pages."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import to_locale

from agentruns.models import Run, StopRequest
from agentruns.page import words
from agentruns.page.actions import Action
from agentruns.page.moments import stop_moment
from agentruns.page.readable import Field, drawn
from agentruns.page.run import Group
from agentruns.page.written import ASIDE, written
from agentruns.states import MAY_TURN_UP
from tools.texts import spelt_out

register = template.Library()
register.filter("clock", words.clock)
register.filter("tier_words", words.tier_words)


@register.filter
def moment(at: datetime) -> str:
    """The time of day; with the date unless it is today."""
    return words.when(at)


@register.filter
def period(run: Run) -> str:
    """From when to when the run lasted."""
    return words.period(run.started_at or run.created_at, run.ended_at or run.created_at)


@register.filter
def figure(n: int) -> str:
    """A large number with separators."""
    return f"{n:,}"


@register.filter
def language_tag(code: str) -> str:
    """The language as HTML wants it: zh-hans is zh-Hans."""
    return to_locale(code).replace("_", "-")


@register.filter
def joined(notes: Iterable[str]) -> str:
    """Short facts on one line."""
    return " · ".join(filter(None, notes))


@register.filter
def facts(action: Action) -> str:
    """How far the action can be undone, and what is known of it, on one line."""
    return joined([action.tier, *action.notes])


@register.simple_tag
def pill(badge: words.Pill) -> SafeString:
    """A badge: icon and word. The icon is decoration: the word says it all."""
    return format_html(
        '<span class="pill is-{}"><span aria-hidden="true">{}</span> {}</span>',
        badge.tone,
        badge.icon,
        badge.label,
    )


@register.filter(name="written")
def as_written(text: str) -> SafeString:
    """A foreign text whole, with what cannot be seen in it named; for an element `as-typed`."""
    return written(text)


@register.filter
def visible(text: object) -> str:
    """A foreign text of one line, with nothing hidden in it."""
    return spelt_out(str(text))


@register.simple_tag
def fields(entries: Iterable[Field]) -> SafeString:
    """Labelled values as a list of descriptions; what is very long is cut."""
    return drawn(entries, is_whole=False)


@register.simple_tag
def all_fields(entries: Iterable[Field]) -> SafeString:
    """The same, whole, as people see it who are asked about it."""
    html = drawn(entries)
    if ASIDE not in html:
        return html
    words = _(
        "What stands in a box is not part of a text: it names what could not be seen, or be taken "
        "for something else."
    )
    return format_html('{}<p class="quiet">{}</p>', html, words)


@register.simple_tag
def posts(name: str, *args: Any) -> SafeString:
    """The attributes of a form or button on the run page that posts to the view `name`, and then
    shows the page as it is. All on the element itself: a live update may take it out of the page
    before the answer comes, and what htmx would inherit is gone then.
    """
    return format_html(
        'hx-post="{}" hx-target="#run" hx-select="#run" hx-swap="keep" hx-ext="keep"',
        reverse(name, args=args),
    )


@register.simple_tag
def group_words(group: Group, stop: StopRequest | None) -> str:
    """What stands beside a group's title."""
    is_held = any(action.call.state == "frozen" for action in group.actions)
    is_over = stop_moment(stop) is not None and not is_held
    said: dict[str, Any] = {
        "in_doubt": _("nobody knows yet; a person or a look-up has to say"),
        "in_flight": _("under way; it will still report"),
        "done": _("in the order in which it happened; undo goes backwards"),
        "failed": _("known to have had no effect"),
        "never_started": _("nothing of this was sent"),
        "waiting": _("nothing of this has been sent"),
    }
    if group.name == "failed" and any(a.call.reason in MAY_TURN_UP for a in group.actions):
        return _("had no effect, or was not found, or a person says that it was not done")
    if group.name == "never_started" and is_over:
        return _("nothing of this was sent, and it will not be")
    return str(said[group.name])
