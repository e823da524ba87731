import socket
from pathlib import Path

import redis

from agentruns.services.ports import LOOPBACK
from agentruns.services.valkey import Valkey


def test_what_it_keeps_is_there_after_a_second_start(data_dir: Path) -> None:
    server = Valkey(data_dir)
    server.start()
    with redis.Redis.from_url(server.url()) as client:
        client.set("bell", "rung")
    server.stop()
    server.start()
    with redis.Redis.from_url(server.url()) as client:
        assert client.get("bell") == b"rung"
    server.stop()


def test_other_users_of_the_machine_are_kept_out(data_dir: Path) -> None:
    server = Valkey(data_dir, durable=False)
    server.start()
    port = int(server.url().rpartition(":")[2].partition("/")[0])
    with socket.create_connection((LOOPBACK, port)) as stranger, stranger.makefile("rb") as answer:
        stranger.sendall(b"PING\r\n")
        assert answer.readline().startswith(b"-NOAUTH")
    server.stop()


def test_a_killed_server_comes_back_on_the_same_address(data_dir: Path) -> None:
    server = Valkey(data_dir, durable=False)
    server.start()
    url = server.url()
    assert server.process is not None
    server.process.kill()
    server.wait_until_ready()
    with redis.Redis.from_url(url) as client:
        assert client.ping()
    server.stop()
