"""All settings, by topic, read strictly from the environment (see .env.example)."""

import re
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from agentruns.logs import configure_structlog, logging_config
from agentruns.services.discover import running_services
from agentruns.services.secretkey import kept_key

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
environ.Env.read_env(env.str("ENV_FILE", default=str(BASE_DIR / ".env")))


def _networks(name: str) -> list[str]:
    """Addresses or networks from the environment; a sentence and the end if one is neither."""
    found: list[str] = env.list(name, default=[])
    for text in found:
        try:
            ip_network(text)
        except ValueError:
            raise SystemExit(f"{name} has “{text}”. It has to be addresses or networks.") from None
    return found


def _port(name: str, default: int, *, least: int = 1) -> int:
    """A port from the environment; a sentence and the end if it is none."""
    text = env.str(name, default=str(default))
    if not (text.isascii() and text.isdecimal() and least <= int(text) < 65536):
        raise SystemExit(f"{name} is “{text}”. It has to be a port: a number up to 65535.")
    return int(text)


def _hosts(name: str, default: list[str]) -> list[str]:
    """Hosts from the environment, each “host” or “host:port”; a sentence and the end otherwise."""
    found = [host.lower() for host in env.list(name, default=default)]
    for host in found:
        if not re.fullmatch(
            r"(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9._-]*[a-z0-9])?)(:[0-9]{1,5})?", host
        ):
            raise SystemExit(
                f"{name} has “{host}”. Each has to be a host or host:port, in ASCII, without "
                "https:// and without *."
            )
    return found


# --- Where and how ----------------------------------------------------------------------------
DEBUG = env.bool("DEBUG", default=False)
DEMO = env.bool("DEMO", default=True)
DATA_DIR = Path(env.str("DATA_DIR", default=str(BASE_DIR / ".data"))).resolve()
PORT = _port("PORT", 8000)
SECRET_KEY = env.str("SECRET_KEY", default="")
if not SECRET_KEY:
    if not DEMO:
        raise ImproperlyConfigured(
            "SECRET_KEY is not set. Set it, or set DEMO=1 to try things out."
        )
    SECRET_KEY = kept_key(DATA_DIR)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
HTTPS = env.bool("HTTPS", default=False)
# Only these may say, by X-Forwarded-For and -Proto, on whose behalf and over what they ask.
TRUSTED_PROXIES = _networks("TRUSTED_PROXIES")
# Where the process that draws the pages listens for the one in front of it: a Unix socket in a
# folder that is closed to others.
PAGES_SOCKET = env.str("PAGES_SOCKET", default=str(DATA_DIR / "sockets" / "pages.sock"))
# Seconds in which it has to say something, or something else is shown in the place of the page.
PAGES_PATIENCE = env.float("PAGES_PATIENCE", default=30.0)
# Seconds in which the whole of a request has to be there.
BODY_PATIENCE = env.float("BODY_PATIENCE", default=30.0)
# Bytes of answers that are kept as they were drawn, per process.
DRAWN_TEXT_BYTES = env.int("DRAWN_TEXT_BYTES", default=64_000_000)
# Live pages that one person has open at the same time; the one that was opened first makes room.
SOCKETS_PER_PERSON = env.int("SOCKETS_PER_PERSON", default=30)
SITE_NAME = "agentruns"

# --- Services: Postgres is the truth, Redis only rings ----------------------------------------
_running = running_services(DATA_DIR)
DATABASE_URL = env.str("DATABASE_URL", default=_running.get("database_url", ""))
# Who owns the tables, for migrations; the role of DATABASE_URL, if there is no other.
DATABASE_OWNER_URL = env.str("DATABASE_OWNER_URL", default=_running.get("database_owner_url", ""))
REDIS_URL = env.str("REDIS_URL", default=_running.get("redis_url", "redis://127.0.0.1:6379"))
DATABASES = {
    "default": {
        **(env.db_url_config(DATABASE_URL) if DATABASE_URL else {"NAME": "agentruns"}),
        "ENGINE": "agentruns.postgresql",
        "ATOMIC_REQUESTS": False,
        "CONN_MAX_AGE": 0,
    }
}
DATABASES["default"]["OPTIONS"] = {
    **DATABASES["default"].get("OPTIONS", {}),
    "pool": {"min_size": 1, "max_size": env.int("DB_POOL_SIZE", default=24), "timeout": 10},
    # Every wait has a deadline, also the ones inside the database.
    "options": "-c statement_timeout=15000 -c lock_timeout=10000 "
    "-c idle_in_transaction_session_timeout=20000",
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Applications -----------------------------------------------------------------------------
INSTALLED_APPS = [
    "agentruns",
    "review",
    "compensation",
    "tools",
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "axes",
    "channels",
    "csp",
    "django_filters",
    "django_fsm",
    "django_htmx",
    "django_structlog",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knox",
    "pghistory",
    "pgtrigger",
    "rest_framework",
]
MIDDLEWARE = [
    "agentruns.middleware.WholeBody",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "agentruns.middleware.NotKept",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "agentruns.middleware.AdminContentSecurityPolicy",
    "django_htmx.middleware.HtmxMiddleware",
    "agentruns.middleware.LocalTime",
    "agentruns.middleware.Problems",
    "django_structlog.middlewares.RequestMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "agentruns.urls"
ASGI_APPLICATION = "agentruns.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "agentruns.page.reader.preferences",
            ],
        },
    }
]

# --- People and sessions: in the database, so that Stop needs nothing but Postgres ------------
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "agentruns.throttle.PasswordBackend",
    "django.contrib.auth.backends.ModelBackend",
    *(["agentruns.demolinks.LinkBackend"] if DEMO else []),
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "runs"
LOGOUT_REDIRECT_URL = "sign-in"
# People of the demo sign in by a link; with this they have a password, too.
DEMO_PASSWORD = env.str("DEMO_PASSWORD", default="")
SESSION_ENGINE = "agentruns.models.session"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
AXES_HANDLER = "agentruns.throttle.Throttle"
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # or others could lock a name for good
AXES_LOCKOUT_CALLABLE = "agentruns.api.problems.locked_out"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "username", "ip_address"]
AXES_CLIENT_IP_CALLABLE = "agentruns.throttle.address_of"
AXES_CLIENT_STR_CALLABLE = "agentruns.throttle.client_words"
CSRF_FAILURE_VIEW = "agentruns.views.problems.forged"

# --- HTTPS: ended by a proxy in front, which says so ------------------------------------------
SECURE_SSL_REDIRECT = HTTPS and bool(TRUSTED_PROXIES)
SECURE_REDIRECT_EXEMPT = ["^healthz$", "^readyz$"]  # asked on this machine
# Seconds for which a browser that has been here comes by HTTPS only. Raise it once that works.
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", default=3600) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
# To have a domain built into browsers is a decision about all of it, and not this site's.
SILENCED_SYSTEM_CHECKS = ["security.W021"]

# --- What a browser may load ------------------------------------------------------------------
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"

# --- The admin's look -------------------------------------------------------------------------
UNFOLD = {
    "SITE_TITLE": SITE_NAME,
    "SITE_HEADER": SITE_NAME,
    "SITE_ICON": "agentruns.admin.navigation.icon",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "agentruns.admin.navigation.icon"}
    ],
    "SITE_URL": "/",
    "SHOW_BACK_BUTTON": True,
    "SIDEBAR": {"show_search": True, "navigation": "agentruns.admin.navigation.sidebar"},
}

# --- Language, time, files --------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "agentruns" / "locale"]
TIME_ZONE = env.str("TIME_ZONE", default="UTC")
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True

# --- Doorbells: Celery and Channels -----------------------------------------------------------
CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_timeout": 5,
    "socket_connect_timeout": 1,
    "max_retries": 1,
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_TASK_ROUTES = {
    "agentruns.tasks.think": {"queue": "think"},
    "agentruns.tasks.act": {"queue": "act"},
    "agentruns.tasks.look_up": {"queue": "act"},
    "agentruns.tasks.drop_leftovers": {"queue": "act"},
    "compensation.tasks.*": {"queue": "act"},
}
# Seconds. It asks every outside system that has drafts.
LEFTOVERS_EVERY = env.float("LEFTOVERS_EVERY", default=20.0)
CELERY_BEAT_SCHEDULE = {
    "sweep": {
        "task": "agentruns.tasks.sweep",
        "schedule": 1.0,
        "options": {"expires": 5},
    },
    "drop-leftovers": {
        "task": "agentruns.tasks.drop_leftovers",
        "schedule": LEFTOVERS_EVERY,
        "options": {"expires": LEFTOVERS_EVERY},
    },
    "chain-heads": {
        "task": "agentruns.tasks.chain_heads",
        "schedule": 1.0,
        "options": {"expires": 5},
    },
    "sweep-undo": {
        "task": "compensation.tasks.sweep",
        "schedule": 1.0,
        "options": {"expires": 5},
    },
}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "agentruns"},
    }
}

# --- The stop protocol: seconds ---------------------------------------------------------------
LEASE_TTL = env.float("LEASE_TTL", default=3.0)
CLAIM_TTL = env.float("CLAIM_TTL", default=30.0)
RETRY_BACKOFF = env.float("RETRY_BACKOFF", default=1.0)
LOOKUP_HORIZON_SCALE = env.float("LOOKUP_HORIZON_SCALE", default=1.0)
DRAIN_DEADLINE = env.float("DRAIN_DEADLINE", default=30.0)
APPROVAL_TTL = env.float("APPROVAL_TTL", default=15 * 60.0)
EXECUTOR_LIMIT = env.int("EXECUTOR_LIMIT", default=300)
TURN_LIMIT = env.int("TURN_LIMIT", default=20)
GOAL_MAX_LENGTH = 20_000
# How many runs of one person may be under way, those that wait included, and how many they may
# start in a minute; 0 is no limit.
RUNS_PER_PERSON = env.int("RUNS_PER_PERSON", default=20)
STARTS_PER_MINUTE = env.int("STARTS_PER_MINUTE", default=60)
# How many turns and how many calls all workers together do at once; one person gets most of them.
THINK_PLACES = env.int("THINK_PLACES", default=16)
ACT_PLACES = env.int("ACT_PLACES", default=4)
# Tests and drills only: see agentruns/pausepoints.py
PAUSE_DIR = env.str("PAUSE_DIR", default=_running.get("pause_dir", ""))

# --- Models: any provider that pydantic-ai speaks to ------------------------------------------
MODEL_PACE = env.float("MODEL_PACE", default=1.0)
# Prose, thoughts, and names and arguments of calls.
ANSWER_MAX_CHARACTERS = env.int("ANSWER_MAX_CHARACTERS", default=400_000)

# --- The demo world and the systems that tools speak to ---------------------------------------
WORLD_DIR = Path(env.str("WORLD_DIR", default=str(DATA_DIR / "world")))
WORLD_HTTP_PORT = _port("WORLD_HTTP_PORT", _running.get("world_http_port", 8801), least=0)
WORLD_SMTP_PORT = _port("WORLD_SMTP_PORT", _running.get("world_smtp_port", 8802), least=0)
WORLD_CALDAV_PORT = _port("WORLD_CALDAV_PORT", _running.get("world_caldav_port", 8803), least=0)
_world = f"http://127.0.0.1:{WORLD_HTTP_PORT}"
MODEL_BASE_URL = env.str("MODEL_BASE_URL", default=f"{_world}/v1")
SMTP_URL = env.str("SMTP_URL", default=f"smtp://127.0.0.1:{WORLD_SMTP_PORT}")
MAIL_DOMAIN = env.str("MAIL_DOMAIN", default="agentruns.example")
MAIL_ARCHIVE = Path(env.str("MAIL_ARCHIVE", default=str(WORLD_DIR / "maildir")))
MAIL_SENT_URL = env.str("MAIL_SENT_URL", default="")
if MAIL_SENT_URL and not MAIL_SENT_URL.startswith(("imap://", "imaps://", "maildir:/")):
    raise SystemExit("MAIL_SENT_URL has to begin with imap://, imaps:// or maildir:/.")
CALDAV_URL = env.str("CALDAV_URL", default=f"http://127.0.0.1:{WORLD_CALDAV_PORT}/demo/team/")
GIT_REMOTE = env.str("GIT_REMOTE", default=str(WORLD_DIR / "repo.git"))
GIT_API_URL = env.str("GIT_API_URL", default=f"{_world}/git/repos/demo/team")
GIT_API_TOKEN = env.str("GIT_API_TOKEN", default="")
GIT_AUTOMATION = env.bool("GIT_AUTOMATION", default=False)
CHAT_URL = env.str("CHAT_URL", default=f"{_world}/chat")
TICKETS_URL = env.str("TICKETS_URL", default=f"{_world}/tickets")
FILES_DIR = Path(env.str("FILES_DIR", default=str(WORLD_DIR / "files")))
SQL_TOOL_URL = env.str("SQL_TOOL_URL", default=_running.get("sql_tool_url", ""))
SQL_STATEMENTS = env.str(
    "SQL_STATEMENTS", default=str(BASE_DIR / "tools" / "world" / "statements.yaml") if DEMO else ""
)
PAYMENTS_URL = env.str("PAYMENTS_URL", default=f"{_world}/payments")
HOOKS_URL = f"{_world}/hooks"
# A model's URLs lead to the open internet and to these: host or host:port.
_inside = [f"127.0.0.1:{WORLD_HTTP_PORT}"] if DEMO else []
HTTP_ALLOWED_HOSTS = _hosts("HTTP_ALLOWED_HOSTS", _inside)
# What http.get reads without asking a person: anywhere else, what stands in a URL could carry out
# what the model has read.
HTTP_READ_HOSTS = _hosts("HTTP_READ_HOSTS", _inside)
_described = str(BASE_DIR / "tools" / "world" / "endpoints.yaml") if DEMO else ""
HTTP_ENDPOINTS = env.str("HTTP_ENDPOINTS", default=_described)
# Programs that may be started as MCP servers from a page, and variables that sources of tools named
# there may be given. (manage.py import_tools may use any.)
MCP_STDIO_COMMANDS: list[str] = env.list("MCP_STDIO_COMMANDS", default=[])
TOOL_SECRETS: list[str] = env.list("TOOL_SECRETS", default=[])

# --- REST -------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "agentruns.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["agentruns.api.parsers.LimitedJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "agentruns.api.problems.as_problem",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "agentruns",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "DESCRIPTION": "Start runs of agents, stop them, and read the truth about what they did.",
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {
        "RunStatus": "agentruns.api.serializers.RUN_STATUS",
        "OutputStatus": "agentruns.api.serializers.OUTPUT_STATUS",
        "CallState": "agentruns.api.serializers.CALL_STATE",
        "UndoState": "compensation.api.UNDO_STATE",
        "StopSignal": "agentruns.api.serializers.STOP_SIGNAL",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "agentruns.api.schema.close_bodies",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# --- Logs -------------------------------------------------------------------------------------
LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
configure_structlog()
LOGGING = logging_config(level=LOG_LEVEL, as_json=not (DEBUG or DEMO))
