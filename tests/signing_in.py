"""What it takes to sign in by a link, for browsers that read a page themselves."""

import re


def csrf_token(markup: str) -> str:
    """The token of the page's form."""
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', markup)
    assert found, markup
    return found[1]
