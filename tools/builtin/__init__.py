"""The tools that come with agentruns. Importing this package registers them."""

from tools.builtin import calendar, chat, files, git, mail, mail_later, payments, sql, tickets

__all__ = ["calendar", "chat", "files", "git", "mail", "mail_later", "payments", "sql", "tickets"]
