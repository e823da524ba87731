import socket
from pathlib import Path

from agentruns.services.ports import LOOPBACK, accepts, free_ports, is_free, kept_ports


def test_free_ports_are_different_and_free() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    assert all(is_free(port) for port in ports)


def test_a_port_that_somebody_listens_on_is_not_free() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
        assert accepts(port)
    assert not accepts(port)


def test_ports_are_kept_from_start_to_start(data_dir: Path) -> None:
    [usual, later] = free_ports(2)
    note = data_dir / "ports.json"
    assert kept_ports(note, {"A": usual}) == {"A": usual}
    assert kept_ports(note, {"A": later}) == {"A": usual}


def test_a_port_that_was_taken_meanwhile_is_replaced(data_dir: Path) -> None:
    note = data_dir / "ports.json"
    with socket.create_server((LOOPBACK, 0)) as server:
        taken = server.getsockname()[1]
        [port] = kept_ports(note, {"A": taken}).values()
    assert port != taken


def test_a_broken_note_is_written_anew(data_dir: Path) -> None:
    note = data_dir / "ports.json"
    note.write_text('{"A": ')
    [usual] = free_ports(1)
    assert kept_ports(note, {"A": usual}) == {"A": usual}
