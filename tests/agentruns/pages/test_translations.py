"""The words in Chinese: complete, and the compiled file is made of the one that people edit.

`manage.py makemessages -l zh_Hans --no-location --no-wrap -i .venv -i tests` and
`manage.py compilemessages` need gettext; running the product does not, so the result is kept.
"""

import ast
import gettext
import re
from pathlib import Path

from django.conf import settings

FOLDER = Path(settings.LOCALE_PATHS[0]) / "zh_Hans" / "LC_MESSAGES"
PLACE = re.compile(r"%\((\w+)\)[sd]|\{(\w+)\}")


def written() -> dict[str, str]:
    """What stands in the .po file: each message and its translation."""
    found = {}
    for block in (FOLDER / "django.po").read_text().split("\n\n"):
        ids = re.search(r'^msgid ((?:".*"\n)+)', block, flags=re.MULTILINE)
        words = re.search(r'^msgstr(?:\[0\])? ((?:".*"\n?)+)', block, flags=re.MULTILINE)
        if ids and words:
            found[_text(ids[1])] = _text(words[1])
    found.pop("", None)
    return found


def _text(lines: str) -> str:
    return "".join(ast.literal_eval(line) for line in lines.strip().split("\n"))


def test_nothing_is_left_untranslated() -> None:
    assert [message for message, words in written().items() if not words] == []


def test_what_is_compiled_is_what_is_written() -> None:
    with (FOLDER / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    assert {message: compiled.gettext(message) for message in written()} | plurals() == written()


def plurals() -> dict[str, str]:
    """Messages with a plural are kept apart in the compiled file."""
    with (FOLDER / "django.mo").open("rb") as file:
        catalog = vars(gettext.GNUTranslations(file))["_catalog"]
    return {key[0]: words for key, words in catalog.items() if isinstance(key, tuple)}


def test_a_translation_names_nothing_that_the_message_does_not_know() -> None:
    assert [
        (message, words)
        for message, words in written().items()
        if not _places(words) <= _places(message) | {"n", "number"}
    ] == []


def _places(text: str) -> set[str]:
    return {name for pair in PLACE.findall(text) for name in pair if name}
