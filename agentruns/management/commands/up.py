"""Start everything on this machine, wait until it is ready, and keep it up until Ctrl-C."""

import itertools
import signal
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from honcho.colour import get_colours
from honcho.printer import Message, Printer

from agentruns import demolinks
from agentruns.services.errors import ServiceError
from agentruns.services.stack import Stack

# Who can sign in with a click, in a demo only.
DEMO_PEOPLE = {
    "ana": "Ana, who starts runs",
    "omar": "Omar, who reviews",
    "ada": "Ada, the admin",
}
NAME_WIDTH = 8


class Command(BaseCommand):
    help = (
        "Start Postgres, Valkey, the pages, the workers and the demo world, and keep them up "
        "until Ctrl-C. DATABASE_URL, REDIS_URL, PORT and DATA_DIR override."
    )
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        self._phase = "starting"
        self._failure = ""
        self._end = threading.Event()
        self._printer = Printer(sys.stdout, width=NAME_WIDTH)
        self._colours: dict[str, str] = {}
        self._palette = itertools.cycle(get_colours())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        try:
            self._run()
        except ServiceError as error:
            self._failure = str(error)
        except KeyboardInterrupt:
            self._say("Ended before it was ready.")
        if self._failure:
            self.stderr.write(self._failure)
            raise SystemExit(1)

    def _run(self) -> None:
        stack = Stack(
            settings.DATA_DIR,
            demo=settings.DEMO,
            apart=False,
            env={"PORT": str(settings.PORT)},
            on_line=self._show,
            on_give_up=self._give_up,
        )
        self._say(f"agentruns is starting; its data is in {settings.DATA_DIR}")
        with stack:
            self._say(self._welcome(stack))
            self._phase = "up"
            self._end.wait()
            self._phase = "ending"
            self._say("\nEnding …")
        self._say("Ended. The data is kept for the next start.")

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # A start is given up at once. An end that has begun goes on: it takes seconds, and leaves
        # nothing behind only if it may finish.
        was, self._phase = self._phase, "ending"
        self._end.set()
        if was == "starting":
            raise KeyboardInterrupt

    def _give_up(self, name: str) -> None:
        if self._phase == "up":
            log = settings.DATA_DIR / "logs" / f"{name}.log"
            self._failure = f"“{name}” died again and again, so everything was ended. See {log}"
            self._end.set()

    def _show(self, name: str, line: str) -> None:
        # What is said while starting and ending is in the logs only: the start says it if it fails.
        if self._phase == "up":
            colour = self._colours.setdefault(name, next(self._palette))
            now = datetime.now()
            self._printer.write(Message("line", line, now, name, colour))

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()

    def _welcome(self, stack: Stack) -> str:
        lines = ["", f"  Ready:  {stack.base_url}/", ""]
        if settings.DEMO:
            lines += [*_links(stack), ""]
        lines += [f"  Logs: {settings.DATA_DIR / 'logs'}", "  Ctrl-C ends everything.", ""]
        return "\n".join(lines)


def _links(stack: Stack) -> Iterator[str]:
    if outwards := demolinks.pointing_outwards():
        yield f"  No sign-in links: {', '.join(outwards)} may let in others than this machine."
        return
    yield "  Sign in with a click (demo, on this machine only, until it ends):"
    for username, who in DEMO_PEOPLE.items():
        yield f"    {who:<22}{stack.base_url}{demolinks.path_of(username, stack.link_secret)}"
