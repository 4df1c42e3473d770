"""Tokens that an OAuth server issues to a client id and its secret (RFC 6749, 4.4), fetched over HTTP.

```
POST /token                                      200  {"access_token": "…", "expires_in": 300}
Authorization: Basic (client id:secret)    ──►   400  {"error": "invalid_client"}
grant_type=client_credentials&scope=…
```
The request has the secret, so it goes to https only, or to this machine, and follows no redirect. It blocks for at
most 10 s for each step; the caller runs it on a thread. At most 1 MiB of the answer is read. Errors never have the
secret, the token, or the query of the URL.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final

from odradek.client.errors import AuthenticationFailedError, BrokerUnreachableError, ConfigurationError

if TYPE_CHECKING:
    from ssl import SSLContext

    from odradek.client.security.credentials import ClientCredentials

_SECONDS: Final = 10.0
_LARGEST: Final = 1 << 20
_TRIED: Final = "get a token"
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")


def fetch_token(credentials: ClientCredentials, context: SSLContext | None = None) -> tuple[str, float]:
    """Return a new token, and when it expires (s since the epoch).

    Raises AuthenticationFailedError if the server refuses, BrokerUnreachableError if it does not answer,
    ConfigurationError for the URL.
    """
    url = _checked(credentials.url)
    form = {"grant_type": "client_credentials"} | ({"scope": credentials.scope} if credentials.scope else {})
    quoted = [urllib.parse.quote_plus(part) for part in (credentials.client_id, credentials.client_secret)]
    basic = base64.b64encode(":".join(quoted).encode()).decode()
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked
        credentials.url,
        data=urllib.parse.urlencode(form).encode(),
        headers={
            "Authorization": f"Basic {basic}",
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        },
    )
    # A proxy of the environment gets only what TLS encrypts.
    proxies = [] if url.startswith("https:") else [urllib.request.ProxyHandler({})]
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirects(), *proxies)
    began = time.time()
    try:
        with opener.open(request, timeout=_SECONDS) as response:
            body = response.read(_LARGEST + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise AuthenticationFailedError(
                _TRIED, f"{url} answered {error.code}{_oauth_error(error)}", "Check the client id, its secret and scope"
            ) from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise BrokerUnreachableError(
            _TRIED, f"{url} cannot be reached ({reason})", "Check sasl_oauthbearer_token_endpoint_url"
        ) from None
    return _token_in(body, url, began)


def _checked(url: str) -> str:
    """The URL as errors name it, without a query. Raises ConfigurationError unless the secret may be sent there."""
    parts = urllib.parse.urlsplit(url)
    is_here = parts.hostname in _THIS_MACHINE
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_here)):
        raise ConfigurationError(
            _TRIED,
            "sasl_oauthbearer_token_endpoint_url is not an https URL",
            "The request has the client's secret, so only https, or http on this machine, will do",
        )
    if parts.username is not None:
        raise ConfigurationError(
            _TRIED,
            "sasl_oauthbearer_token_endpoint_url has a user",
            "Set sasl_oauthbearer_client_credentials_client_id and its secret",
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The secret goes to the named server only."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _oauth_error(error: urllib.error.HTTPError) -> str:
    """The error code of RFC 6749 (5.2): a word, which has no secret."""
    try:
        code = json.loads(error.read(_LARGEST)).get("error")
    except (OSError, ValueError, AttributeError, HTTPException):
        return ""
    return f" {code}" if isinstance(code, str) and code.isidentifier() and len(code) < 50 else ""


def _token_in(body: bytes, url: str, began: float) -> tuple[str, float]:
    try:
        answer = json.loads(body) if len(body) <= _LARGEST else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise AuthenticationFailedError(_TRIED, f"{url} answered no JSON object", "Check the URL")
    token, seconds = answer.get("access_token"), answer.get("expires_in")
    if not isinstance(token, str) or not token:
        raise AuthenticationFailedError(_TRIED, f"{url} answered without an access_token", "Check the URL")
    if isinstance(seconds, str) and seconds.isdecimal():
        seconds = int(seconds)
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and seconds > 0:
        return token, began + seconds
    expires_at = _expiry_of(token)
    if expires_at is None or expires_at <= began:
        raise AuthenticationFailedError(
            _TRIED, f"{url} does not say when the token expires", "It should answer with expires_in"
        )
    return token, expires_at


def _expiry_of(token: str) -> float | None:
    """The claim `exp` of a JWT, unverified: it only decides when to get the next one."""
    try:
        claims = token.split(".")[1]
        expires_at = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))).get("exp")
    except (IndexError, ValueError, AttributeError):
        return None
    return float(expires_at) if isinstance(expires_at, (int, float)) and not isinstance(expires_at, bool) else None
