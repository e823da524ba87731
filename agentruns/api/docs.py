"""The API's documentation as a page, served from this machine only."""

from csp.constants import UNSAFE_INLINE
from csp.decorators import csp_update
from django.utils.decorators import method_decorator
from drf_spectacular.views import SpectacularSwaggerSplitView


# Swagger UI sets styles on its elements; its scripts come as files.
@method_decorator(csp_update({"style-src": [UNSAFE_INLINE]}), name="dispatch")
class DocsView(SpectacularSwaggerSplitView):
    """Swagger UI, from the wheel that ships it."""

    url_name = "api-schema"

    schema = None
