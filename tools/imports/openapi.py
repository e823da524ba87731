"""An OpenAPI document (3.0 or 3.1) read into offers: each operation is a tool.

A tool's arguments are the operation's parameters, by name, and its JSON body as `body`. Nothing
outside of the document is looked at. Errors name the place in the document.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import yaml
from django.utils.translation import gettext as _

from tools.contract import Data
from tools.imports import schema
from tools.imports.offers import (
    MOST_OFFERS,
    ImportProblem,
    Listing,
    Offer,
    Refusal,
    digest,
    offer,
    shown,
)

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
PLACES = ("path", "query", "header")
# What we say ourselves, or what the document may not say (OpenAPI: “shall be ignored”).
OURS = {"accept", "content-type", "authorization", "idempotency-key", "host", "content-length"}
MOST_STEPS = 20_000  # parts of schemas, for one operation
_JSON = re.compile(r"application/(json|[\w.+-]+\+json)\s*(;.*)?\Z", re.IGNORECASE)


_KEPT = ("name", "in", "style", "explode")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")


class _Loader(yaml.SafeLoader):
    """YAML as JSON has it: no dates, and no aliases, by which a few lines become gigabytes."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            said = _("line %(line)s uses an alias, which is not supported.")
            raise ImportProblem(said % {"line": mark.line + 1})
        return super().compose_node(parent, index)


def listing(text: str, *, at: str, base_url: str = "") -> Listing:
    """What the document of `text` offers. `at`: its own address, which relative servers start
    from; `base_url`: to be used instead of the document's. Raises ImportProblem.
    """
    document = _parsed(text)
    version = str(document.get("openapi", ""))
    if not version.startswith(("3.0", "3.1")):
        said = _("Not an OpenAPI document of version 3.0 or 3.1: “openapi” is “%(version)s”.")
        raise ImportProblem(said % {"version": version[:20]})
    base = base_url or _base_url(document, at)
    operations = list(_operations(document))
    if len(operations) > MOST_OFFERS:
        said = _("The document has %(n)s operations, more than %(limit)s.")
        raise ImportProblem(said % {"n": len(operations), "limit": MOST_OFFERS})
    offers: dict[str, Offer] = {}
    refused = []
    for where, name, operation in operations:
        try:
            if name in offers:
                raise ImportProblem.at(where, _("there is an operation of that name already."))
            offers[name] = _Operation(document, where, operation).offer(name)
        except (ImportProblem, RecursionError) as error:
            refused.append(Refusal(shown(name, 200), str(error) or "…"))
    info = document.get("info")
    title = info.get("title", "") if isinstance(info, dict) else ""
    return Listing(list(offers.values()), refused, shown(str(title), 200), base)


def _parsed(text: str) -> Data:
    try:
        found = json.loads(text) if text.lstrip()[:1] == "{" else yaml.load(text, _Loader)  # noqa: S506
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        said = _("Neither JSON nor YAML: %(why)s")
        raise ImportProblem(said % {"why": " ".join(str(error).split())[:300]}) from error
    if not isinstance(found, dict):
        raise ImportProblem(_("Not an OpenAPI document: it is not an object."))
    return found


def _base_url(document: Data, at: str) -> str:
    """The address of the first server, its variables at their defaults."""
    servers = document.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else {}
    if not isinstance(first, dict):
        raise ImportProblem.at("servers[0]", _("not an object."))
    url = str(first.get("url", "/"))
    for name, variable in dict(first.get("variables") or {}).items():
        if isinstance(variable, dict):
            url = url.replace("{" + str(name) + "}", str(variable.get("default", "")))
    whole = urljoin(at, url) if at.startswith(("http://", "https://")) else url
    if urlsplit(whole).scheme not in ("http", "https") or not urlsplit(whole).hostname:
        said = _("“%(url)s” is no address of a server: give the base address yourself.")
        raise ImportProblem.at("servers[0].url", said % {"url": url[:200]})
    return whole.rstrip("/")


def _operations(document: Data) -> Iterator[tuple[str, str, Data]]:
    """Each operation: its place, its name, and itself with the parameters of its path."""
    paths = document.get("paths") or {}
    if not isinstance(paths, dict):
        raise ImportProblem.at("paths", _("not an object."))
    for path, item in paths.items():
        if not isinstance(item, dict) or not str(path).startswith("/"):
            raise ImportProblem.at(f"paths.{path}", _("not an object under a path."))
        for method in METHODS:
            operation = item.get(method)
            if isinstance(operation, dict):
                name = str(operation.get("operationId") or f"{method}{path}")
                whole = {**operation, "method": method.upper(), "path": str(path)}
                whole["shared"] = item.get("parameters") or []
                yield f"paths.{path}.{method}", name, whole


class _Operation:
    """One operation on its way to an offer."""

    def __init__(self, document: Data, where: str, operation: Data) -> None:
        self.document = document
        self.where = where
        self.operation = operation
        self.definitions: Data = {}
        self.steps = 0

    def offer(self, name: str) -> Offer:
        """Raises ImportProblem for what we could not send as the document wants it."""
        properties: Data = {}
        required: list[str] = []
        details: Data = {key: self.operation[key] for key in ("method", "path")}
        details["parameters"] = []
        for parameter in self._parameters():
            argument = self._free_name(parameter, properties)
            properties[argument] = self._schema_of(parameter)
            if parameter.get("required") is True or parameter["in"] == "path":
                required.append(argument)
            kept: Data = {}
            kept |= {key: parameter[key] for key in _KEPT if key in parameter}
            details["parameters"].append({"argument": argument, **kept})
        if body := self._body():
            properties["body"] = self._own(body["schema"], f"{self.where}.requestBody")
            required += ["body"] if body["required"] else []
        whole: Data = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        if self.definitions:
            whole["$defs"] = self.definitions
        return offer(
            name,
            title=str(self.operation.get("summary") or name),
            description=str(
                self.operation.get("description") or self.operation.get("summary") or ""
            ),
            schema=schema.cleaned(whole, self.where),
            hints={"method": self.operation["method"]},
            details=details,
        )

    def _parameters(self) -> Iterator[Data]:
        """Those that we send: of the path and of the operation, which wins."""
        found: dict[tuple[str, str], Data] = {}
        for at, each in enumerate(
            [*self.operation["shared"], *(self.operation.get("parameters") or [])]
        ):
            where = f"{self.where}.parameters[{at}]"
            parameter = self._followed(each, where)
            name, place = parameter.get("name"), parameter.get("in")
            if not isinstance(name, str) or not isinstance(place, str):
                raise ImportProblem.at(where, _("a parameter has a name, and a place."))
            found[place, name] = parameter
        for (place, name), parameter in found.items():
            if place == "header" and name.lower() in OURS:
                continue
            if place == "header" and not _TOKEN.match(name):
                said = _("“%(name)s” is no name of a header.") % {"name": shown(name, 80)}
                raise ImportProblem.at(self.where, said)
            if place in PLACES:
                yield parameter
            elif parameter.get("required") is True:
                said = _("it needs “%(name)s” in a %(place)s, which is not supported.")
                words = {"name": name[:80], "place": place[:20]}
                raise ImportProblem.at(self.where, said % words)

    def _free_name(self, parameter: Data, taken: Data) -> str:
        name: str = parameter["name"]
        return name if name not in taken and name != "body" else f"{parameter['in']}_{name}"

    def _schema_of(self, parameter: Data) -> Data:
        where = f"{self.where}.parameters.{parameter['name']}"
        content = parameter.get("content")
        if isinstance(content, dict) and content:
            raise ImportProblem.at(where, _("a parameter with a content is not supported."))
        own = self._own(parameter.get("schema") or {"type": "string"}, where)
        description = shown(str(parameter.get("description") or ""), 500)
        return {**own, "description": description} if description else own

    def _body(self) -> Data | None:
        """The JSON body's schema, and whether it has to be there; None without a body."""
        where = f"{self.where}.requestBody"
        if "requestBody" not in self.operation:
            return None
        body = self._followed(self.operation["requestBody"], where)
        content = body.get("content")
        kinds = content if isinstance(content, dict) else {}
        kind = next((each for each in kinds if _JSON.match(str(each))), None)
        is_required = body.get("required") is True
        if kind is None:
            if not is_required:
                return None
            said = _("its body is “%(kinds)s”, and only JSON is supported.")
            raise ImportProblem.at(where, said % {"kinds": ", ".join(map(str, kinds))[:200]})
        media = kinds[kind] if isinstance(kinds[kind], dict) else {}
        return {"schema": media.get("schema") or {}, "required": is_required}

    def _followed(self, found: Any, where: str) -> Data:
        """What a reference leads to, as often as it takes. Raises ImportProblem."""
        for _again in range(10):
            if not isinstance(found, dict):
                raise ImportProblem.at(where, _("not an object."))
            if "$ref" not in found:
                return found
            found = self._target(found["$ref"], where)
        raise ImportProblem.at(where, _("references lead to references without end."))

    def _target(self, reference: Any, where: str) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            said = _("“%(reference)s” is outside of the document, which is not supported.")
            raise ImportProblem.at(where, said % {"reference": str(reference)[:200]})
        target = schema.resolved(self.document, reference)
        if target is None:
            said = _("“%(reference)s” is not in the document.")
            raise ImportProblem.at(where, said % {"reference": reference[:200]})
        return target

    def _own(self, found: Any, where: str, depth: int = 0) -> Any:
        """A schema that stands on its own: what it refers to is taken along, as `$defs`."""
        self.steps += 1
        if depth > schema.DEEPEST or self.steps > MOST_STEPS:
            raise ImportProblem.at(where, _("the schema is too large, or nested too deeply."))
        if isinstance(found, list):
            return [self._own(item, where, depth + 1) for item in found]
        if not isinstance(found, dict):
            return found
        reference = found.get("$ref")
        own = {
            str(key): self._own(value, where, depth + 1)
            for key, value in found.items()
            if key != "$ref" or not isinstance(value, str)
        }
        if isinstance(reference, str):
            own["$ref"] = f"#/$defs/{self._taken_along(reference, where, depth)}"
        return _as_in_3_1(own)

    def _taken_along(self, reference: str, where: str, depth: int) -> str:
        target = self._target(reference, where)
        name = reference.removeprefix("#/components/schemas/")
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            name = digest(reference)
        if name not in self.definitions:
            self.definitions[name] = {}  # it may be part of itself
            self.definitions[name] = self._own(target, where, depth + 1)
        return name


def _as_in_3_1(own: Data) -> Data:
    """What 3.0 says in words of its own, in those of JSON schema."""
    if own.get("nullable") is True:
        del own["nullable"]
        kind = own.get("type")
        if isinstance(kind, str):
            own["type"] = [kind, "null"]
            if isinstance(own.get("enum"), list) and None not in own["enum"]:
                own["enum"] = [*own["enum"], None]
        elif "$ref" in own:
            reference = own.pop("$ref")
            own["anyOf"] = [{"$ref": reference}, {"type": "null"}]
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(own.get(exclusive), bool) and own.pop(exclusive) and limit in own:
            own[exclusive] = own.pop(limit)
    return own
