"""The SDK's client: its own retries off, limits for every call, rate limits as errors of ours.

The kit retries and counts. The SDK would repeat a call five times and sleep in its thread
meanwhile; its counter of retries is not a public setting.
"""

from hcloud import Client
from requests import Response
from requests.adapters import HTTPAdapter

from bigfleet_provider_hetzner import __version__
from bigfleet_provider_hetzner.errors import RateLimitedError

CONNECT_WITHIN_S, READ_WITHIN_S = 5.0, 30.0
CONNECTIONS = 64
PUBLIC = "https://api.hetzner.cloud/v1"


def open_client(token: str, endpoint: str | None) -> Client:
    """A client of one project; `endpoint` is the API's address without its version."""
    address = f"{endpoint.rstrip('/')}/v1" if endpoint else PUBLIC
    client = Client(
        token, api_endpoint=address, application_name="bigfleet-provider-hetzner",
        application_version=__version__, timeout=(CONNECT_WITHIN_S, READ_WITHIN_S),
    )  # fmt: skip
    base = client._client
    base._retry_max_retries = 0
    base._session.hooks["response"].append(_refuse_when_limited)
    for scheme in ("http://", "https://"):
        base._session.mount(scheme, HTTPAdapter(pool_maxsize=CONNECTIONS))
    return client


def _refuse_when_limited(response: Response, *_: object, **__: object) -> None:
    if response.status_code == 429:
        response.content  # noqa: B018 - read to its end, the connection goes back to the pool
        after = response.headers.get("Retry-After", "")
        raise RateLimitedError(response.url, float(after) if after.isdecimal() else None)
