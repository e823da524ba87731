"""Who is asking: a token's owner, or the person whose browser it is."""

from typing import Any

from drf_spectacular.contrib.knox_auth_token import KnoxTokenScheme
from knox.auth import TokenAuthentication as KnoxAuthentication
from rest_framework.exceptions import AuthenticationFailed


class TokenAuthentication(KnoxAuthentication):
    """Knox's tokens; what is not even text is an invalid token, too."""

    def authenticate_credentials(self, token: bytes) -> tuple[Any, Any]:
        if not token.isascii():
            raise AuthenticationFailed()
        user, auth_token = super().authenticate_credentials(token)
        return user, auth_token


class TokenScheme(KnoxTokenScheme):  # type: ignore[no-untyped-call]
    """What the OpenAPI document says about it."""

    target_class = "agentruns.api.authentication.TokenAuthentication"
    name = "token"
