"""The processes of a test run share servers, and nothing that is on them."""

import os

from django.conf import settings


def test_the_tools_change_the_database_and_the_folder_of_this_process() -> None:
    assert os.environ["SQL_TOOL_URL"] == settings.SQL_TOOL_URL
    assert str(settings.DATA_DIR) == os.environ["DATA_DIR"]
