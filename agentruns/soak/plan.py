"""What a soak is going to do, all of it from its seed. Pure: no clock, no database.

Each actor draws from a stream of its own, so that what happens to one run, or when one worker is
killed, does not depend on how fast the rest went.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

# Where stops, kills and lost doorbells are put. What comes early is in more runs, so it is here
# more often.
CALL_STEPS = ("proposed", "buffered", "approved", "claimed", "prepared", "gate", "sent", "landed")
POINTS = (
    *("token:1", "token:7", "token:20"),
    *(f"think:{turn}:{step}" for turn in (1, 1, 2) for step in ("leased", "ended", "finished")),
    *(f"call:{number}:{step}" for number in (1, 1, 1, 2, 2, 3) for step in CALL_STEPS),
)
# Each agent by its name, with its limit and what it does there; "" has none.
AGENTS = {
    "soak": "",
    "soak-stops": "stop",
    "soak-degrades": "degrade",
    "soak-waits": "wait",
}
SIGNALS = ("user", "user", "admin", "api", "handoff", "dependency")


@dataclass(frozen=True)
class Press:
    """One Stop: `after` seconds, or at pause point `at` if the run comes to it before.

    `times`: pressed by so many people at the same moment. `kills`: the worker that stands at the
    point is killed, before the stop or after it.
    """

    after: float
    at: str
    times: int
    signal: str
    pending: str
    kills: str  # "", before, after


@dataclass(frozen=True)
class Pause:
    """Paused after so many seconds, for so many seconds."""

    after: float
    lasts: float


@dataclass(frozen=True)
class RunPlan:
    """One run: what it is told to do follows from its id (tools/world/random_script.py).

    `presses`: the first is for the run as started, each further one for a resume. `parent`: the
    number of an earlier run whose child it is. `undo`: how much of what landed is undone, 0 to 1.
    `silent_at`: whoever comes to this pause point rings no doorbell until the next one.
    """

    number: int
    run_id: str
    starts_at: float
    parent: int | None
    agent: str
    rings: bool
    presses: tuple[Press, ...]
    pause: Pause | None
    resumes: int
    frozen: str
    undo: float
    silent_at: str


@dataclass(frozen=True)
class Decision:
    """A reviewer's word on a call: `approved` or `rejected`, after so many seconds; "" is none."""

    verdict: str
    after: float


@dataclass(frozen=True)
class Blow:
    """Something breaks at a moment: a worker is killed, or a server ends and comes back.

    `pick` (0 to 1) chooses among the processes of a pool.
    """

    at: float
    kind: str  # child, act, think, control, world; postgres, valkey
    pick: float
    is_orderly: bool = False


@dataclass(frozen=True)
class Nuisance:
    """Something small goes wrong at a moment.

    again: a task is sent a second time; silence: messages are taken out of the queue unread;
    otherwise the mode of a fault of a service of the world.
    """

    at: float
    kind: str
    pick: float
    service: str
    seconds: float


# Weights of what is killed. A killed child of the pool is back in a moment, the rest in seconds;
# without its world no model speaks, and every run that was listening fails.
KILLS = {"child": 75, "act": 7, "think": 10, "control": 7, "world": 1}
KILL_EVERY = 2.4  # seconds
RESTART_EVERY = 50.0
NUISANCE_EVERY = 1.0
SERVICES = ("chat", "tickets", "smtp", "caldav", "git")
FAULTS = ("delay", "drop_after", "error_after", "refuse", "busy", "busy")


def stream(seed: int, *actor: object) -> Random:
    """The random numbers of one actor."""
    return Random(f"{seed}:{':'.join(map(str, actor))}")  # noqa: S311  (repeatable, not secret)


def runs(seed: int, per_second: float) -> Iterator[RunPlan]:
    """Every run, in the order of starting; endless."""
    at, pace = 0.0, stream(seed, "pace")
    number = 0
    while True:
        number += 1
        at += pace.expovariate(per_second)
        yield _run(seed, number, at)


def run_id(seed: int, number: int) -> str:
    """The id of a run, from which its script follows."""
    return f"run_s{seed}n{number}"


def _run(seed: int, number: int, at: float) -> RunPlan:
    random = stream(seed, "run", number)
    resumes = random.choices((0, 1, 2), (70, 24, 6))[0]
    is_stopped = random.random() < 0.9
    return RunPlan(
        number=number,
        run_id=run_id(seed, number),
        starts_at=at,
        parent=number - random.randint(1, 3) if number > 3 and random.random() < 0.15 else None,
        agent=random.choices(list(AGENTS), (82, 6, 6, 6))[0],
        rings=random.random() < 0.95,
        presses=tuple(_press(random) for _ in range(resumes + 1)) if is_stopped else (),
        pause=Pause(random.uniform(0, 3), random.uniform(0.2, 4))
        if random.random() < 0.15
        else None,
        resumes=resumes,
        frozen=random.choice(("release", "void")),
        undo=random.choices((0.0, 0.5, 1.0), (75, 12, 13))[0],
        silent_at=random.choice(POINTS) if random.random() < 0.12 else "",
    )


def _press(random: Random) -> Press:
    at = random.choice(POINTS) if random.random() < 0.5 else ""
    soon, later = random.uniform(0, 1.5), random.uniform(1.5, 10)
    return Press(
        after=later if at else random.choices((0.0, soon, later), (6, 24, 70))[0],
        at=at,
        times=random.choices((1, 2, 5), (80, 15, 5))[0],
        signal=random.choice(SIGNALS),
        pending=random.choices(("discard", "freeze"), (65, 35))[0],
        kills=random.choices(("", "before", "after"), (80, 10, 10))[0] if at else "",
    )


def decision(seed: int, run: int, call: int) -> Decision:
    """What the reviewer says to this call of this run, if asked."""
    random = stream(seed, "decision", run, call)
    verdict = random.choices(("approved", "rejected", ""), (76, 18, 6))[0]
    return Decision(verdict, random.uniform(0.0, 2.0))


def blows(seed: int) -> Iterator[Blow]:
    """Kills and restarts, in order of time; endless."""
    kills, restarts = _kills(seed), _restarts(seed)
    kill, restart = next(kills), next(restarts)
    while True:
        if kill.at <= restart.at:
            yield kill
            kill = next(kills)
        else:
            yield restart
            restart = next(restarts)


def _kills(seed: int) -> Iterator[Blow]:
    at, random = 2.0, stream(seed, "kills")
    while True:
        at += random.uniform(0.5, 1.5) * KILL_EVERY
        kind = random.choices(list(KILLS), list(KILLS.values()))[0]
        yield Blow(at, kind, random.random())


def _restarts(seed: int) -> Iterator[Blow]:
    at, random = 0.0, stream(seed, "restarts")
    while True:
        at += random.uniform(0.4, 1.6) * RESTART_EVERY
        server = random.choice(("postgres", "valkey"))
        yield Blow(at, server, 0.0, is_orderly=random.random() < 0.4)


def nuisances(seed: int) -> Iterator[Nuisance]:
    """Redeliveries, lost messages and faults of the world, in order of time; endless."""
    at, random = 1.0, stream(seed, "nuisances")
    while True:
        at += random.expovariate(1 / NUISANCE_EVERY)
        kind = random.choices(("again", "silence", random.choice(FAULTS)), (60, 20, 20))[0]
        # git has no word for being busy
        service = random.choice(SERVICES[:-1] if kind == "busy" else SERVICES)
        yield Nuisance(at, kind, random.random(), service, seconds=random.uniform(0.2, 4.0))
