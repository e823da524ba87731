"""What a drill may have the demo world do wrong, and with whose effect."""

from tools.world.faults import Fault, Service

SERVICES: dict[str, Service] = {
    "email.send": "smtp",
    "calendar.create_event": "caldav",
    "calendar.move_event": "caldav",
    "calendar.cancel_event": "caldav",
    "git.open_draft": "git",
    "chat.post_message": "chat",
    "chat.announce": "chat",
    "tickets.create": "tickets",
    "http.hooks": "hooks",
    "http.request": "hooks",
    "payments.authorize_capture": "payments",
}
# Each with some service; `dataclasses.replace` puts in the right one. No tool waits longer than
# 20 seconds for an answer.
FAULTS = {
    "refuse": Fault("chat", "refuse"),
    "busy": Fault("chat", "busy"),
    "slow": Fault("chat", "delay", seconds=2.0),
    "hang": Fault("chat", "delay", seconds=25.0),
    "drop": Fault("chat", "drop_after"),
    "error": Fault("chat", "error_after"),
    "late": Fault("chat", "late", seconds=14.0),
}
