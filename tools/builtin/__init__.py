"""The tools that come with agentruns. Importing this package registers them."""

from tools.builtin import calendar, chat, endpoints, git, mail, mail_later, tickets, web

__all__ = ["calendar", "chat", "endpoints", "git", "mail", "mail_later", "tickets", "web"]
