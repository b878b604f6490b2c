"""boto3 sessions and clients: credentials, an assumed role, endpoints, time limits.

The SDK's own retries are off, because the kit retries and counts, and every call has limits of its
own, so that a thread always comes back.
"""

import asyncio
import functools
from typing import Any

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.loaders import create_loader
from botocore.session import get_session

from bigfleet_provider_aws.options import NO_CREDENTIALS, AwsOptions
from bigfleet_providerkit import OptionError

PRICING_REGIONS = {"eu": "eu-central-1", "cn": "cn-northwest-1"}
CONFIG = Config(
    connect_timeout=5.0, read_timeout=30.0, retries={"total_max_attempts": 1},
    max_pool_connections=64,
)  # fmt: skip


def pricing_region(region: str) -> str:
    """The price list API lives in few regions and knows the prices of all of a partition."""
    return PRICING_REGIONS.get(region.partition("-")[0], "us-east-1")


def open_session(options: AwsOptions) -> "boto3.Session":
    """A session with the credentials of the chain, or with those of the role to assume."""
    session = _new_session(options.in_region)
    if not options.assume_role:
        return session
    source = session.get_credentials()
    if source is None:
        raise OptionError(NO_CREDENTIALS)
    wanted = {"RoleSessionName": f"bigfleet-{options.provider or options.in_region}"}
    if options.assume_role_external_id:
        wanted["ExternalId"] = options.assume_role_external_id
    fetcher = AssumeRoleCredentialFetcher(
        lambda service, **named: session.client(
            service, endpoint_url=options.endpoint("sts"), config=CONFIG, **named
        ),
        source, options.assume_role, extra_args=wanted,
    )  # fmt: skip
    renewed = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
    return _new_session(options.in_region, renewed)


def open_client(session: "boto3.Session", service: str, options: AwsOptions) -> Any:
    """A client of one service."""
    region = options.in_region
    return session.client(
        service, region_name=pricing_region(region) if service == "pricing" else region,
        endpoint_url=options.endpoint(service), config=CONFIG,
    )  # fmt: skip


def send(client: Any, op: str, params: dict[str, Any]) -> dict[str, Any]:
    """Make the call that the reference of AWS names `op`."""
    return dict(getattr(client, xform_name(op))(**params))


async def has_credentials(options: AwsOptions) -> bool:
    """Whether the chain finds any; it may ask the instance's own role, so not on the loop."""
    session = await asyncio.to_thread(_new_session, options.in_region)
    return await asyncio.to_thread(session.get_credentials) is not None


@functools.cache
def _loader() -> Any:
    """The models of the services: megabytes of JSON that every session can share."""
    return create_loader()


def _new_session(region: str, credentials: object = None) -> "boto3.Session":
    inner = get_session()
    inner.register_component("data_loader", _loader())
    if credentials is not None:
        # botocore has no public way to give a session credentials that renew themselves.
        inner._credentials = credentials
    return boto3.Session(botocore_session=inner, region_name=region)
