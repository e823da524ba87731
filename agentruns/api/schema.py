"""What the OpenAPI document says beyond what is read from the serializers."""

from typing import Any

STOP = "stop_run"


def close_bodies(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """A body has no members but those that it lists; a Stop is not refused for one."""
    components = result["components"]["schemas"]
    for path in result["paths"].values():
        for operation in path.values():
            if operation["operationId"] != STOP:
                for content in operation.get("requestBody", {}).get("content", {}).values():
                    name = content["schema"]["$ref"].rpartition("/")[2]
                    components[name]["additionalProperties"] = False
    return result
