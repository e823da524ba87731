"""The verbs that a tool may have, and what is wrong with the way one is written.

They are called by threads that wait for what they return. What an `async def` or a generator
returns has not even begun: nothing would be sent, and the call would be in doubt.
"""

import inspect

VERBS: dict[str, tuple[str, ...]] = {
    "describe": ("args",),
    "prepare": ("ctx", "args"),
    "commit": ("ctx", "args", "draft"),
    "void": ("ctx", "draft"),
    "drafts": (),
    "lookup": ("ctx",),
    "compensate": ("ctx", "receipt"),
    "needs_approval": ("args",),
    "follow_up": ("args",),
    "item_keys": ("args",),
    "unit_key": ("args",),
}
ONE_BY_ONE = ("drafts",)  # read to its end by whoever asks


def gaps(name: str, impl: object) -> list[str]:
    """A sentence for each verb of the tool that cannot be called as it will be."""
    found = []
    for verb, takes in VERBS.items():
        method = getattr(impl, verb, None)
        if method is None:
            continue
        write = f"write def {verb}({', '.join(('self', *takes))})"
        if _is_async(method):
            found.append(
                f"Tool “{name}”: {verb} is async, and nobody would await it: {write}, and run what "
                "is async in there to its end, e.g. by asyncio.run."
            )
        elif inspect.isgeneratorfunction(method) and verb not in ONE_BY_ONE:
            found.append(f"Tool “{name}”: {verb} yields, and nobody would go on: {write}.")
        elif not _takes(method, len(takes)):
            found.append(f"Tool “{name}”: {verb} cannot be called with what it is given: {write}.")
    return found


def _is_async(method: object) -> bool:
    ways = (method, getattr(type(method), "__call__", None))  # noqa: B004  (which way it has)
    return any(inspect.iscoroutinefunction(m) or inspect.isasyncgenfunction(m) for m in ways)


def _takes(method: object, count: int) -> bool:
    """Whether it can be called with so many arguments by their places."""
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # one in C may not say what it takes
        return True
    return True
