"""Every step of the model names the function of the protocol that it stands for, and it exists."""

from importlib import import_module

import pytest

from tests.model.deeds import DEEDS

CODE = sorted({deed.code for deed in DEEDS.values() if deed.code})


@pytest.mark.parametrize("name", CODE)
def test_the_function_that_a_step_stands_for_exists(name: str) -> None:
    module, function = name.split(".")
    assert callable(getattr(import_module(f"agentruns.protocol.{module}"), function))
