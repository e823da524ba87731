"""`python -m agentruns.drill`: the hands of a drill in a process of their own; see hands.py."""

import sys

import django

django.setup()

from agentruns.drill.hands import serve  # noqa: E402  (it needs the applications)

serve(sys.stdin, sys.stdout)
