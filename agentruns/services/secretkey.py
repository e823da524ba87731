"""The key that signs sessions where none was set: random, made once per data folder.

Pure Python, because the settings themselves ask.
"""

import os
import secrets
import tempfile
from pathlib import Path

NAME = "secret.key"
LEAST = 50  # characters; Django's own check asks for as many


def kept_key(data_dir: Path) -> str:
    """The key of this data folder, made now if there is none. Ends the process if it is damaged."""
    path = data_dir / NAME
    if not path.exists():
        _make(path)
    key = path.read_text().strip()
    if len(key) < LEAST:
        raise SystemExit(f"{path} holds no key. Delete it to have a new one made.")
    return key


def is_kept(data_dir: Path, key: str) -> bool:
    """Whether `key` is the one that was made for this data folder."""
    try:
        return (data_dir / NAME).read_text().strip() == key
    except OSError:
        return False


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd, draft = tempfile.mkstemp(dir=path.parent, prefix=".secret-")  # for its owner's eyes: 0600
    try:
        with os.fdopen(fd, "w") as file:
            file.write(secrets.token_urlsafe(64))
            file.flush()
            os.fsync(fd)
        # Whole or not at all; of two first starts, the later one adopts the other's key.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)
