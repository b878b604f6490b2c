"""Requests as values: what the four mutations have in common, checked at the edge.

All of it answers INVALID_ARGUMENT and happens before the fence, so a bad request moves no mark.
"""

from dataclasses import dataclass

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_base.identifiers import IdentifierError, check_id, check_text
from bigfleet_providerkit.errors import Code, Refusal
from bigfleet_providerkit.machines.fence import Token
from bigfleet_providerkit.machines.record import encode_metadata
from bigfleet_providerkit.machines.state import Kind

MutationRequest = pb.CreateRequest | pb.ConfigureRequest | pb.DrainRequest | pb.DeleteRequest
HIGHEST_STATE = max(pb.MachineState.values())


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mutation, whatever its kind."""

    kind: Kind
    machine: str
    token: Token
    cluster: str = ""
    metadata: bytes = b""
    blob: bytes = b""
    grace: int = 0


def read_mutation(request: MutationRequest, max_metadata: int) -> Mutation:
    """The mutation behind a request, or a refusal that names what is wrong with it."""
    token = Token(request.shard_id, request.shard_epoch, request.sequence_number)
    read_machine(request.machine_id, "machine_id")
    if request.shard_id:
        read_id(request.shard_id, "shard_id")
    if isinstance(request, pb.CreateRequest):
        return Mutation(Kind.CREATE, request.machine_id, token)
    if isinstance(request, pb.DeleteRequest):
        return Mutation(Kind.DELETE, request.machine_id, token)
    if isinstance(request, pb.DrainRequest):
        grace = request.grace_period_seconds
        if grace < 0:
            raise Refusal(
                Code.INVALID_ARGUMENT, f"grace_period_seconds is {grace}; it cannot be negative"
            )
        return Mutation(Kind.DRAIN, request.machine_id, token, grace=grace)
    if request.cluster_id:
        read_id(request.cluster_id, "cluster_id")
    metadata = encode_metadata(request.shard_metadata)
    if len(metadata) > max_metadata:
        raise Refusal(
            Code.INVALID_ARGUMENT,
            f"shard_metadata has {len(metadata)} bytes; at most {max_metadata} are kept",
        )
    return Mutation(
        Kind.CONFIGURE, request.machine_id, token,
        cluster=request.cluster_id, metadata=metadata, blob=request.bootstrap_blob,
    )  # fmt: skip


def read_id(value: str, what: str) -> str:
    """An id of a request, or a refusal that repeats at most a few characters of it."""
    try:
        return check_id(value, what)
    except IdentifierError as error:
        raise Refusal(Code.INVALID_ARGUMENT, str(error)) from None


def read_machine(value: str, what: str) -> str:
    """The id of a machine, which may be any text that is not too long to be kept with a mark."""
    if not value:
        raise Refusal(Code.INVALID_ARGUMENT, f"{what} is empty")
    try:
        return check_text(value, what)
    except IdentifierError as error:
        raise Refusal(Code.INVALID_ARGUMENT, str(error)) from None


def check_filter(request: pb.ListFilter) -> frozenset[int]:
    """The wanted states of a List, or a refusal."""
    if request.max_results < 0:
        raise Refusal(
            Code.INVALID_ARGUMENT, f"max_results is {request.max_results}; it cannot be negative"
        )
    for state in request.states:
        if not 0 <= state <= HIGHEST_STATE:
            raise Refusal(Code.INVALID_ARGUMENT, f"there is no machine state {state}")
    return frozenset(request.states)
