"""What a page says of a run was so at one moment, whatever is written while it is read."""

from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentruns.models import Run
from agentruns.postgresql.snapshot import snapshot
from agentruns.protocol.stop import request_stop
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.steps import Steps, now
from tests.pausing import at_once


def test_what_is_written_meanwhile_is_read_afterwards(steps: Steps, owner: User) -> None:
    run = steps.start()
    with snapshot():
        assert Run.objects.get(pk=run.pk).status == "queued"
        at_once([lambda: request_stop(run.pk, by=owner)])
        assert Run.objects.get(pk=run.pk).status == "queued"
    assert now(run).status == "stopped_clean"


def test_the_page_of_a_run_is_read_so(steps: Steps, browser: Browser, owner: User) -> None:
    run, _calls = steps.running("test.note")
    client = browser(owner)
    with CaptureQueriesContext(connection) as captured:
        assert client.get(f"/runs/{run.pk}/").status_code == 200
    said = [query["sql"] for query in captured]
    begun = next(n for n, sql in enumerate(said) if "REPEATABLE READ, READ ONLY" in sql)
    ended = said.index("COMMIT", begun)
    of_calls = [n for n, sql in enumerate(said) if 'FROM "agentruns_toolcall"' in sql]
    assert of_calls
    assert all(begun < n < ended for n in of_calls)
