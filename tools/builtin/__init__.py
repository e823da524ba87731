"""The tools that come with agentruns. Importing this package registers them."""

from tools.builtin import (
    calendar,
    chat,
    endpoints,
    files,
    git,
    mail,
    mail_later,
    payments,
    sql,
    tickets,
    web,
)

__all__ = [
    "calendar",
    "chat",
    "endpoints",
    "files",
    "git",
    "mail",
    "mail_later",
    "payments",
    "sql",
    "tickets",
    "web",
]
