"""Which model an agent's `model` string means, through pydantic-ai.

`demo:<scenario>` is the demo world's scripted provider, spoken to over the same protocol as a
local OpenAI-compatible server. Everything else is a name that pydantic-ai knows.
"""

from django.conf import settings
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from agentruns.models.agent import DEMO


def model_of(name: str) -> Model:
    """The pydantic-ai model for an agent's `model`.

    Make it inside the event loop that uses it, and close it there (`async with`): its HTTP
    client must not be shared between loops.
    """
    if not name.startswith(DEMO):
        return infer_model(name)
    provider = OpenAIProvider(base_url=settings.MODEL_BASE_URL, api_key="demo")
    return OpenAIChatModel(name.removeprefix(DEMO), provider=provider)
