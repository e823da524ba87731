"""The OpenAPI document: served, and the same as the one in docs/."""

import io
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils.translation import override

pytestmark = pytest.mark.django_db


def test_the_snapshot_in_docs_is_up_to_date() -> None:
    made = io.StringIO()
    with override("en"):
        call_command("spectacular", "--validate", "--fail-on-warn", stdout=made)

    kept = (Path(settings.BASE_DIR) / "docs" / "openapi.yaml").read_text()
    assert yaml.safe_load(made.getvalue()) == yaml.safe_load(kept), (
        "run: manage.py spectacular --file docs/openapi.yaml"
    )


def test_the_document_is_served() -> None:
    answer = Client().get("/api/schema/")

    document = yaml.safe_load(answer.content)
    assert document["openapi"].startswith("3.1")
    assert "/api/v1/runs/{run_id}/cancel" in document["paths"]


def test_the_page_with_the_documentation_loads_nothing_from_elsewhere(owner: User) -> None:
    page = Client().get("/api/docs/")

    assert page.status_code == 200
    assert "://" not in page.content.decode()
    assert "script-src 'self';" in page["Content-Security-Policy"] + ";"
