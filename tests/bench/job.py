"""One part of the bench, in a process of its own: `python -m tests.bench.job PART JSON`.

PART is a module here with a function `measure`; its answer is the last line of stdout, in JSON.
"""

import importlib
import json
import os
import sys

import django


def main(part: str, options: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "agentruns.settings"
    django.setup()
    found = importlib.import_module(f"tests.bench.{part}").measure(**json.loads(options))
    sys.stdout.write(f"\n{json.dumps(found)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
