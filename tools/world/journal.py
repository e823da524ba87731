"""The servers' own records of what they did, by their names in the world's folder."""

MAIL = "mail.jsonl"
CALENDAR = "calendar.jsonl"
GIT = "git.jsonl"
CHAT = "chat.jsonl"
TICKETS = "tickets.jsonl"
PAYMENTS = "payments.jsonl"
# The tools themselves log here what they do to the files of the demo.
FILES = "files/.agentruns/log.jsonl"
HOOKS = "hooks.jsonl"
