"""A process that has loaded the drill once, and forks for each one that it is asked for.

`python -m tests.drill.forking SOCKET`, on a stack's environment. One connection to the socket is
one drill: a line of JSON with its arguments in, a line with exit code, stdout and stderr out.
"""

import json
import os
import sys
import tempfile
from socketserver import ForkingMixIn, StreamRequestHandler, UnixStreamServer

import django
from django.core.management import ManagementUtility


class OneDrill(StreamRequestHandler):
    """Runs in the child: plays it as `manage.py drill` does."""

    def handle(self) -> None:
        arguments = json.loads(self.rfile.readline())
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            os.dup2(out.fileno(), sys.stdout.fileno())
            os.dup2(err.fileno(), sys.stderr.fileno())
            code = exit_code(arguments)
            sys.stdout.flush()
            sys.stderr.flush()
            printed = [os.pread(each.fileno(), 10_000_000, 0).decode() for each in (out, err)]
        self.wfile.write(json.dumps([code, *printed]).encode() + b"\n")


class Forking(ForkingMixIn, UnixStreamServer):
    max_children = 64
    request_queue_size = 64


def exit_code(arguments: list[str]) -> int:
    try:
        ManagementUtility(["manage.py", "drill", *arguments]).execute()
    except SystemExit as ended:
        if not isinstance(ended.code, str):
            return ended.code or 0
        sys.stderr.write(f"{ended.code}\n")
        return 1
    return 0


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "agentruns.settings"
    django.setup()
    exit_code(["--list-points"])  # loads what a drill needs
    with Forking(sys.argv[1], OneDrill) as server:
        parent = os.getppid()
        server.timeout = 0.5
        while os.getppid() == parent:
            server.handle_request()
            server.service_actions()


if __name__ == "__main__":
    main()
