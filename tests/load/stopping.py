"""Whoever presses Stop: `python -m tests.load.stopping prepare|stop JSON`, with a stack's
environment. Prints JSON.
"""

import http.client
import json
import os
import sys
import time
from typing import Any
from urllib.parse import urlencode

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "agentruns.settings"
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from knox.models import AuthToken  # noqa: E402

from agentruns.models import Agent, Run  # noqa: E402
from agentruns.protocol.start import start_run  # noqa: E402
from agentruns.services.ports import LOOPBACK  # noqa: E402

PATIENCE = 120.0  # seconds
PEOPLE = ("attacker", "owner")
PASSWORD = "correct horse battery staple"

Data = dict[str, Any]


def prepare(port: int) -> Data:
    """Two accounts, signed in by page and by API, and agents for each way to be a burden."""
    for slug in ("flood", "name", "wait", "quiet"):
        Agent.objects.create(slug=slug, name=slug.title(), model=f"demo:{slug}", tools=[])
    return {name: _account(name, port) for name in PEOPLE}


def _account(name: str, port: int) -> Data:
    user = User.objects.create_user(name, password=PASSWORD)
    token = AuthToken.objects.create(user)[1]
    web = Web(port)
    form = {"username": name, "password": PASSWORD}
    web.ask("GET", "/sign-in/")
    web.ask("POST", "/sign-in/", {"csrfmiddlewaretoken": web.cookies["csrftoken"], **form})
    return {"token": token, "cookies": web.cookies}


class Web:
    """Asks as a browser or a program does, each time by a connection of its own."""

    def __init__(self, port: int, cookies: dict[str, str] | None = None, token: str = "") -> None:
        self._http = http.client.HTTPConnection(LOOPBACK, port, timeout=PATIENCE)
        self.cookies = dict(cookies or {})
        self._token = token

    def ask(self, method: str, path: str, fields: dict[str, str] | None = None) -> int:
        """The status of the answer."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if self._token:
            headers = {"Content-Type": "application/json", "Authorization": f"Token {self._token}"}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        body = "{}" if self._token and method == "POST" else urlencode(fields or {})
        self._http.request(method, path, body, headers)
        answer = self._http.getresponse()
        answer.read()
        self._http.close()  # by the next time, the server would have let go of it
        for line in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = line.split(";")[0].partition("=")
            self.cookies[name] = value
        return answer.status


def stop(port: int, account: Data, stops: int) -> Data:
    """Seconds of each Stop, by page and by API in turn; and until a run that was started begins."""
    owner, agent = User.objects.get(username="owner"), Agent.objects.get(slug="quiet")
    page, api = Web(port, account["cookies"]), Web(port, token=account["token"])
    token = account["cookies"]["csrftoken"]
    times: dict[str, list[float]] = {"Stop by page": [], "Stop by API": [], "until it began": []}
    for number in range(stops):
        began = time.monotonic()
        run = start_run(owner=owner, agent=agent, goal="Be quiet.")
        _wait_until_it_writes(run.pk)
        times["until it began"].append(time.monotonic() - began)
        pressed = time.monotonic()
        if number % 2:
            status = api.ask("POST", f"/api/v1/runs/{run.pk}/cancel")
        else:
            status = page.ask("POST", f"/runs/{run.pk}/stop/", {"csrfmiddlewaretoken": token})
        name = "Stop by API" if number % 2 else "Stop by page"
        times[name].append(time.monotonic() - pressed)
        assert status == (202 if number % 2 else 302), status
        assert not Run.objects.get(pk=run.pk).is_active
    return times


def _wait_until_it_writes(run_id: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not Run.objects.filter(pk=run_id).exclude(lease_holder="").exists():
        assert time.monotonic() < deadline, "its turn did not come"
        time.sleep(0.05)


if __name__ == "__main__":
    found = {"prepare": prepare, "stop": stop}[sys.argv[1]](**json.loads(sys.argv[2]))
    sys.stdout.write(f"\n{json.dumps(found)}\n")
