"""The dial-out side of the provider protocol: how a shard speaks to the providers it knows.

    client     six calls as values: tokens, deadlines, answers checked
    pages      a List as bytes: which record lies where
    transport  how a call reaches a provider: a gRPC channel that follows its TLS files
    registry   several providers, by name
    errors     what a call can end with

    stamps = FencingStamps("shard-a", epoch=7)
    providers = Providers(lambda site: ProviderClient.dial(site, stamps))
    await providers.use([ProviderSite("cloud", "127.0.0.1:9001", "region-a")])
    ack = await providers["cloud"].create("cloud/Spot/small/zone-a/000")

A call is one attempt: when to try again, and what a refusal means for a machine, is the shard's
decision. The provider that tests use is in the laboratory: `bigfleet_lab.fake`.
"""

# The environment of gRPC has to be set before anything imports grpc.
import bigfleet.wire.grpc_env  # noqa: F401 - it acts by being imported

# isort: split
from bigfleet.provider.client import Ack, Listing, ProviderClient, ProviderSite, RefusedRecord
from bigfleet.provider.errors import (
    FencedError,
    MachineNotFoundError,
    NotSupportedError,
    ProviderError,
    SiteError,
    UnknownProviderError,
    UnusableAnswerError,
)
from bigfleet.provider.pages import GarbageError, Page, id_of
from bigfleet.provider.registry import Providers
from bigfleet.provider.transport import CallError, GrpcTransport, ListsRaw, Transport

__all__ = [
    "Ack",
    "CallError",
    "FencedError",
    "GarbageError",
    "GrpcTransport",
    "Listing",
    "ListsRaw",
    "MachineNotFoundError",
    "NotSupportedError",
    "Page",
    "ProviderClient",
    "ProviderError",
    "ProviderSite",
    "Providers",
    "RefusedRecord",
    "SiteError",
    "Transport",
    "UnknownProviderError",
    "UnusableAnswerError",
    "id_of",
]
