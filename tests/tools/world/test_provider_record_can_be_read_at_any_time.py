"""The provider's record is read while it is written, and after the provider was killed."""

from datetime import UTC, datetime
from pathlib import Path

from tools.world.provider_record import REQUESTS, TOKENS, RequestLog, model_requests


def begin(world_dir: Path) -> RequestLog:
    return RequestLog(world_dir, scenario="inbox", turn=1, run="run_1")


def test_no_record_is_no_requests(tmp_path: Path) -> None:
    assert model_requests(tmp_path) == []


def test_a_request_without_an_end_shows_the_tokens_so_far(tmp_path: Path) -> None:
    log = begin(tmp_path)
    log.token()
    log.token()

    (request,) = model_requests(tmp_path)

    assert (request.scenario, request.turn, request.run) == ("inbox", 1, "run_1")
    assert (request.end, request.ended_at) == (None, None)
    assert len(request.token_times) == 2
    assert request.started_at <= request.token_times[0] <= datetime.now(UTC)


def test_requests_keep_their_order_and_their_own_tokens(tmp_path: Path) -> None:
    first, second = begin(tmp_path), begin(tmp_path)
    second.token()
    first.token()
    second.token()
    second.end("complete")
    first.end("closed_by_client")

    requests = model_requests(tmp_path)

    assert [request.request for request in requests] == [first.request, second.request]
    assert [len(request.token_times) for request in requests] == [1, 2]
    assert [request.end for request in requests] == ["closed_by_client", "complete"]


def test_a_line_that_is_being_written_is_left_for_later(tmp_path: Path) -> None:
    begin(tmp_path).token()
    for name in (REQUESTS, TOKENS):
        with (tmp_path / name).open("a", encoding="utf-8") as file:
            file.write('{"event": "sta')

    (request,) = model_requests(tmp_path)

    assert len(request.token_times) == 1


def test_tokens_of_a_request_that_is_not_known_yet_are_left_for_later(tmp_path: Path) -> None:
    begin(tmp_path).token()
    (tmp_path / REQUESTS).write_text("", encoding="utf-8")

    assert model_requests(tmp_path) == []
