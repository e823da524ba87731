"""The key that signs sessions where none was set: random, one per data folder (A3)."""

import threading
from pathlib import Path

import pytest

from agentruns.services.secretkey import LEAST, NAME, is_kept, kept_key


def test_each_data_folder_has_a_key_of_its_own(data_dir: Path) -> None:
    first, second = kept_key(data_dir / "a"), kept_key(data_dir / "b")
    assert first != second
    assert min(len(first), len(second)) >= LEAST
    assert kept_key(data_dir / "a") == first
    assert is_kept(data_dir / "a", first)
    assert not is_kept(data_dir / "b", first)
    assert not is_kept(data_dir / "c", first)


def test_it_is_for_its_owner_only(data_dir: Path) -> None:
    kept_key(data_dir / "a")
    assert (data_dir / "a" / NAME).stat().st_mode & 0o777 == 0o600
    assert (data_dir / "a").stat().st_mode & 0o777 == 0o700
    assert [path.name for path in (data_dir / "a").iterdir()] == [NAME]


def test_two_first_starts_have_the_same_key(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have found no key; each makes one before either is kept."""
    together = threading.Barrier(8, timeout=20)
    real = Path.exists

    def exists(path: Path) -> bool:
        found = real(path)
        if path.name == NAME:
            together.wait()
        return found

    monkeypatch.setattr(Path, "exists", exists)
    keys: list[str] = []
    starts = [threading.Thread(target=lambda: keys.append(kept_key(data_dir))) for _ in range(8)]
    for start in starts:
        start.start()
    for start in starts:
        start.join()
    assert len(keys) == 8
    assert len(set(keys)) == 1


@pytest.mark.parametrize("text", ["", "short\n"])
def test_a_damaged_key_is_not_used(data_dir: Path, text: str) -> None:
    (data_dir / NAME).write_text(text)
    with pytest.raises(SystemExit, match="holds no key"):
        kept_key(data_dir)
