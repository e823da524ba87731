"""Ids in addresses: what cannot be one leads nowhere, without a look into the database."""

from django.urls.converters import StringConverter

from agentruns.ids import LENGTH


class RunId(StringConverter):
    regex = f"run_[0-9A-Z]{{{LENGTH}}}"


class UndoStepId(StringConverter):
    regex = f"comp_[0-9A-Z]{{{LENGTH}}}"


class CallId(StringConverter):
    regex = f"call_[0-9A-Z]{{{LENGTH}}}"
