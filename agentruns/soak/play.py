"""The player's process: play until stdin ends, bring everything to rest, report on stdout."""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from django.conf import settings

from agentruns.soak.finale import settle, stop_everything
from agentruns.soak.people import People
from agentruns.soak.player import Player, Tempo
from agentruns.soak.traps import Traps
from agentruns.soak.truth import report_of

PROGRESS_EVERY = 15.0  # seconds


def play(wish: dict[str, Any]) -> None:
    """`wish` is what the host was asked for, and `pause_dir`."""
    people = People(settings.WORLD_DIR)
    tempo = Tempo(wish["seed"], wish["per_second"], wish["at_once"])
    traps = Traps(Path(wish["pause_dir"]))
    player = Player(tempo, people, traps, settings.WORLD_DIR, _tell)
    is_over = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(is_over,), daemon=True).start()
    _tell({"playing": True})
    threading.Thread(target=_say_how_it_goes, args=(player, is_over), daemon=True).start()
    player.play(is_over.is_set)
    player.end()
    people.finish()
    cut_short = stop_everything(people)
    _tell({"progress": f"the play is over; {cut_short} runs were stopped for it"})
    is_settled = settle(people)
    report = report_of(people.tally, settings.WORLD_DIR)
    _tell({"report": report | {"cut_short": cut_short, "is_settled": is_settled}})


def _wait_for_the_end(is_over: threading.Event) -> None:
    sys.stdin.read()
    is_over.set()


def _say_how_it_goes(player: Player, is_over: threading.Event) -> None:
    began = time.monotonic()
    while not is_over.wait(PROGRESS_EVERY):
        minutes, seconds = divmod(int(time.monotonic() - began), 60)
        _tell({"progress": f"{minutes:02}:{seconds:02}  {player.progress()}"})


_stdout = threading.Lock()


def _tell(what: dict[str, Any]) -> None:
    with _stdout:
        sys.stdout.write(json.dumps(what, default=str) + "\n")
        sys.stdout.flush()
