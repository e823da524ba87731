"""What a source offers, read and held to limits; nothing of it is believed."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from tools.contract import Data
from tools.errors import ToolError
from tools.storable import storable
from tools.texts import cut, without_unseen

MOST_OFFERS = 500
LONGEST_DESCRIPTION = 2000  # characters that are kept; the revision is of the whole
LONGEST_TITLE = 120
WIRE_LENGTH = 64  # of a name, as most providers take it
_PLAIN = re.compile(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*(\.[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*)*\Z")
_ODD = re.compile(r"[^A-Za-z0-9-]+")


class ImportProblem(ToolError):
    """A source cannot be read, or says what cannot be taken; the sentence says where."""

    code = "import_problem"

    @classmethod
    def at(cls, where: str, sentence: str) -> "ImportProblem":
        """The problem with its place in front: in the document, or the name of a tool."""
        return cls(f"{where}: {sentence}", where=where)


@dataclass(frozen=True)
class Offer:
    """One tool as its source describes it. `hints` is what it says about its own risks."""

    remote_name: str
    title: str
    description: str
    schema: Data
    hints: Data = field(default_factory=dict)
    details: Data = field(default_factory=dict)
    revision: str = ""


@dataclass(frozen=True)
class Refusal:
    """A tool that is not taken, and why."""

    remote_name: str
    why: str


@dataclass(frozen=True)
class Listing:
    """All that a source offers now. `revision` is of all of it."""

    offers: list[Offer]
    refused: list[Refusal] = field(default_factory=list)
    says_of_itself: str = ""
    base_url: str = ""

    @property
    def revision(self) -> str:
        return digest([self.base_url, sorted(offer.revision for offer in self.offers)])


def offer(remote_name: str, *, title: str, description: str, **parts: Data) -> Offer:
    """An Offer, its texts cut and cleaned for people, its revision that of the uncut whole."""
    return Offer(
        remote_name,
        title=shown(title, LONGEST_TITLE) or shown(remote_name, LONGEST_TITLE),
        description=shown(description, LONGEST_DESCRIPTION),
        revision=digest([remote_name, title, description, parts]),
        **{name: storable(value) for name, value in parts.items()},
    )


def digest(value: Any) -> str:
    """Of anything that is JSON; 32 hex digits."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def shown(text: str, limit: int) -> str:
    """A foreign text as people may see it: without invisible signs, and no longer than `limit`."""
    return cut(without_unseen(str(storable(text))).strip(), limit)


def local_name(slug: str, remote_name: str) -> str:
    """What we call it: `slug.remote_name`, if providers take that; else a name of the same letters
    with a digest behind it, so that two are never called the same.
    """
    room = WIRE_LENGTH - len(slug) - 2
    dots = remote_name.count(".")  # each is two signs for a provider
    if _PLAIN.match(remote_name) and len(remote_name) + dots <= room:
        return f"{slug}.{remote_name}"
    letters = _ODD.sub("-", remote_name).strip("-")[: room - 9]
    return f"{slug}.{letters}-{digest(remote_name)[:8]}".replace(".-", ".")
