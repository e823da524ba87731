from pathlib import Path

from agentruns.services.discover import StackLock, describe, is_up, running_services, undescribe

WHAT = {"database_url": "postgresql://x/y", "pid": 1}


def test_a_fresh_folder_has_nothing_up(data_dir: Path) -> None:
    assert not is_up(data_dir)
    assert running_services(data_dir) == {}
    assert running_services(data_dir / "missing") == {}


def test_a_description_is_believed_while_its_writer_lives(data_dir: Path) -> None:
    lock = StackLock(data_dir)
    assert lock.acquire()
    describe(data_dir, WHAT)
    assert running_services(data_dir) == WHAT
    lock.release()
    assert running_services(data_dir) == {}


def test_a_description_is_for_its_owner_only(data_dir: Path) -> None:
    describe(data_dir, WHAT)
    assert (data_dir / "up.json").stat().st_mode & 0o077 == 0


def test_a_broken_description_is_nothing(data_dir: Path) -> None:
    lock = StackLock(data_dir)
    lock.acquire()
    for text in ("", "{", "[]", "null"):
        (data_dir / "up.json").write_text(text)
        assert running_services(data_dir) == {}
    lock.release()


def test_the_lock_has_one_holder(data_dir: Path) -> None:
    first, second = StackLock(data_dir), StackLock(data_dir)
    assert first.acquire()
    assert not second.acquire(patience=0)
    first.release()
    assert second.acquire()
    second.release()


def test_taking_the_description_away_twice_is_fine(data_dir: Path) -> None:
    describe(data_dir, WHAT)
    undescribe(data_dir)
    undescribe(data_dir)
    assert not (data_dir / "up.json").exists()
