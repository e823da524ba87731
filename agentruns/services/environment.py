"""What our processes are told through their environment."""

import os
from collections.abc import Mapping

# Everything that says where data is and whom tools speak to. A test or a drill must inherit none
# of it: its mail would really leave.
PLACES = (
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
    "REDIS_URL",
    "DATA_DIR",
    "PORT",
    "PAGES_SOCKET",
    "PAUSE_DIR",
    "WORLD_DIR",
    "WORLD_HTTP_PORT",
    "WORLD_SMTP_PORT",
    "WORLD_CALDAV_PORT",
    "MODEL_BASE_URL",
    "SMTP_URL",
    "MAIL_ARCHIVE",
    "CALDAV_URL",
    "GIT_REMOTE",
    "GIT_API_URL",
    "GIT_API_TOKEN",
    "CHAT_URL",
    "TICKETS_URL",
    "PAYMENTS_URL",
    "FILES_DIR",
    "SQL_TOOL_URL",
    "SQL_STATEMENTS",
    "HTTP_ALLOWED_HOSTS",
    "HTTP_READ_HOSTS",
    "HTTP_ENDPOINTS",
    "MAIL_SENT_URL",
)
NO_FILE = {"ENV_FILE": os.devnull}


def isolated(environ: Mapping[str, str]) -> dict[str, str]:
    """This environment without any place in it, neither set nor read from the file `.env`."""
    return {name: value for name, value in environ.items() if name not in PLACES} | NO_FILE
