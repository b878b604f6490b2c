"""boto3 sessions and clients: credentials, an assumed role, endpoints, time limits.

The SDK's own retries are off, because the kit retries and counts, and every call has limits of its
own, so that a thread always comes back. Clients are made once and are safe to share by threads.
"""

import asyncio
import functools
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.loaders import create_loader
from botocore.session import get_session

from bigfleet_provider_aws.options import NO_CREDENTIALS, AwsOptions
from bigfleet_providerkit import OptionError

CONNECT_WITHIN_S, READ_WITHIN_S = 5.0, 30.0
PRICING_REGIONS = {"eu": "eu-central-1", "cn": "cn-northwest-1"}


def pricing_region(region: str) -> str:
    """The price list API lives in few regions and knows the prices of all of a partition."""
    return PRICING_REGIONS.get(region.partition("-")[0], "us-east-1")


class Clients:
    """The clients of the services, made when they are first used."""

    def __init__(self, options: AwsOptions) -> None:
        self._options = options
        self._made: dict[str, Any] = {}
        self._session = self._open()

    @property
    def ec2(self) -> Any:
        """Instances, tags, types, spot prices."""
        return self._client("ec2")

    @property
    def ssm(self) -> Any:
        """Commands on hosts, and parameters that name images."""
        return self._client("ssm")

    @property
    def sqs(self) -> Any:
        """The queue of events."""
        return self._client("sqs")

    @property
    def pricing(self) -> Any:
        """The price list."""
        return self._client("pricing", region_name=pricing_region(self._options.in_region))

    def renew(self) -> None:
        """Find credentials again, from the start of the chain."""
        self._session = self._open()
        self._made = {}

    def close(self) -> None:
        """Let go of the connections."""
        for client in self._made.values():
            client.close()

    def credentials(self) -> object:
        """The credentials that the chain finds; None without."""
        return self._session.get_credentials()

    def _open(self) -> "boto3.Session":
        options = self._options
        session = _new_session(options.in_region)
        if not options.assume_role:
            return session
        wanted: Mapping[str, object] = {
            "RoleSessionName": f"bigfleet-{options.provider or options.in_region}",
            **(
                {"ExternalId": options.assume_role_external_id}
                if options.assume_role_external_id
                else {}
            ),
        }
        source = session.get_credentials()
        if source is None:
            raise OptionError(NO_CREDENTIALS)
        fetcher = AssumeRoleCredentialFetcher(
            lambda service, **named: session.client(
                service, endpoint_url=options.endpoint("sts"), config=_config(), **named
            ),
            source, options.assume_role, extra_args=wanted,
        )  # fmt: skip
        renewed = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
        return _new_session(options.in_region, renewed)

    def _client(self, service: str, **named: str) -> Any:
        made = self._made.get(service)
        if made is None:
            made = self._session.client(
                service, endpoint_url=self._options.endpoint(service), config=_config(), **named
            )
            self._made[service] = made
        return made


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


def _config() -> Config:
    return Config(
        connect_timeout=CONNECT_WITHIN_S,
        read_timeout=READ_WITHIN_S,
        retries={"total_max_attempts": 1},
        max_pool_connections=64,
    )


async def has_credentials(options: AwsOptions) -> bool:
    """Whether the chain finds any; it may ask the instance's own role, so not on the loop."""

    def find() -> bool:
        return _new_session(options.in_region).get_credentials() is not None

    return await asyncio.to_thread(find)
