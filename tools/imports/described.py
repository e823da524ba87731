"""What imported tools of every kind share: how they are described, and how answers are kept."""

import json
import os
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import BaseModel

from tools.contract import Data
from tools.errors import NoEffect
from tools.imports.models import ImportedTool, ToolSource
from tools.secrets import masked, secrets_of, unmasked, without
from tools.storable import storable
from tools.texts import line

LONGEST_ANSWER = 16_000  # characters of what the model is told
LARGEST_RECEIPT = 64 * 1024  # as JSON


class Imported:
    """Base of both kinds of imported tools: no look-up and no undo, since nobody promised any."""

    undo_note = gettext_lazy(
        "This tool was imported: nobody promised an undo. Whether and how it can be taken back, "
        "its own system knows."
    )

    def __init__(self, row: ImportedTool) -> None:
        self.row = row
        self.title = f"{row.title} ({row.source.slug})"
        self.explains = row.description

    def describe(self, args: BaseModel) -> str:
        """Its name as the source has it, where it goes, and the arguments as they are sent."""
        words = {"tool": self.row.remote_name, "source": self.row.source.slug}
        given = masked(args)
        if not given:
            return _("%(tool)s at %(source)s") % words
        words["arguments"] = ", ".join(f"{key}: {_short(value)}" for key, value in given.items())
        return _("%(tool)s at %(source)s with %(arguments)s") % words


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"“{line(text, 120)}”" if isinstance(value, str) else line(text, 120)


def plain(args: BaseModel) -> Data:
    """The arguments as they are sent, secrets and all."""
    return unmasked(masked(args), secrets_of(args))


def secret_values(source: ToolSource) -> dict[str, str]:
    """Header or variable → secret, from the environment. Raises NoEffect for what is not there."""
    missing = [name for name in source.secrets.values() if not os.environ.get(name)]
    if missing:
        raise NoEffect(
            "secret_missing",
            _("%(names)s is not set, so nothing was sent.") % {"names": ", ".join(missing)},
        )
    return {where: os.environ[name] for where, name in source.secrets.items()}


def kept(answer: Any, args: BaseModel | None, source_secrets: dict[str, str]) -> Any:
    """A foreign answer as a ledger may keep it: without the secrets that went out, and storable.

    To be cut afterwards, never before: of a secret that was cut in two, the half would stay.
    """
    hidden = [value for _path, value in secrets_of(args)] if args is not None else []
    for value in source_secrets.values():  # “Bearer …” as a whole, and what follows it
        hidden += [value, *value.split()[-1:]]
    return storable(without(answer, hidden))


def bounded(data: Data) -> Data:
    """A receipt's data; of one that is too large, what it was is said instead."""
    size = len(json.dumps(data, ensure_ascii=False, default=str))
    return data if size <= LARGEST_RECEIPT else {"not_kept": size}


def cut(text: str) -> str:
    """An answer as the model is told it."""
    return text if len(text) <= LONGEST_ANSWER else text[:LONGEST_ANSWER] + "…"
