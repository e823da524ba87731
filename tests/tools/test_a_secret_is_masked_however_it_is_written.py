"""R26: what somebody outside says back has no secret in it, and no part of one."""

import json
from urllib.parse import quote, quote_plus

import pytest
from pydantic import BaseModel, SecretStr

from tools.imports.described import kept
from tools.secrets import MASK, without

SECRET = 'pä"ss\\wo/rd +1\n2'


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
    ],
)
def test_in_json_and_in_addresses_too(written: str) -> None:
    assert without(f"<{written}>", [SECRET]) == f"<{MASK}>"


def test_one_that_is_within_another_does_not_leave_the_rest() -> None:
    assert without("abcd-efgh-ijkl", ["efgh", "abcd-efgh-ijkl", "abcd-efgh"]) == MASK


def test_one_that_no_address_can_hold_is_masked_all_the_same() -> None:
    assert without("<abc\ud800def>", ["abc\ud800def"]) == f"<{MASK}>"


class Args(BaseModel):
    pin: SecretStr


def test_one_with_signs_that_are_not_kept_is_masked_before_they_go() -> None:
    assert kept("<12\x0034>", Args(pin=SecretStr("12\x0034")), {}) == f"<{MASK}>"
    assert kept("<s3cr3t>", None, {"Authorization": "Bearer s3cr3t"}) == f"<{MASK}>"
