"""Decisions about calls that would act on the real world."""

from tests.tools.conftest import _world_process, world

__all__ = ["_world_process", "world"]
