"""How the errors of AWS become the kit's classes.

The class decides what happens next: Retryable is tried again, OutOfCapacity and QuotaExceeded fail
at once so that a shard takes another slot, Gone is success for a termination. The SDK is not
imported here: its errors are recognised by what they carry.
"""

import re
from collections.abc import Mapping

from bigfleet_providerkit import (
    Gone,
    InvalidRequest,
    OutOfCapacity,
    QuotaExceeded,
    Retryable,
    SubstrateError,
    Unauthorized,
)

THROTTLED = frozenset(
    {"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException",
     "TooManyRequestsException", "RequestThrottled", "RequestThrottledException", "SlowDown",
     "EC2ThrottledException", "RequestResourceCountExceeded"}
)  # fmt: skip
OUT_OF_CAPACITY = frozenset(
    {"InsufficientInstanceCapacity", "InsufficientHostCapacity", "UnfulfillableCapacity",
     "InsufficientCapacity", "InsufficientReservedInstanceCapacity", "SpotMaxPriceTooLow",
     "ReservationCapacityExceeded", "InsufficientFreeAddressesInSubnet",
     "InsufficientCapacityOnHost"}
)  # fmt: skip
QUOTA = frozenset(
    {"VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded",
     "VolumeLimitExceeded", "MaxIOPSLimitExceeded", "NetworkInterfaceLimitExceeded",
     "AddressLimitExceeded"}
)  # fmt: skip
NOT_ALLOWED = frozenset(
    {"UnauthorizedOperation", "AuthFailure", "ExpiredToken", "ExpiredTokenException",
     "RequestExpired", "RequestTimeTooSkewed", "AccessDenied", "AccessDeniedException",
     "InvalidClientTokenId", "UnrecognizedClientException", "InvalidSignatureException",
     "SignatureDoesNotMatch", "MissingAuthenticationToken", "OptInRequired",
     "KMSAccessDenied", "KmsAccessDenied"}
)  # fmt: skip
CLOCK_CODES = frozenset(
    {"AuthFailure", "RequestExpired", "RequestTimeTooSkewed", "InvalidSignatureException",
     "SignatureDoesNotMatch"}
)  # fmt: skip
GONE = frozenset({"InvalidInstanceID.NotFound", "InvalidInstanceID"})
NOT_YET = frozenset(
    {"InvalidInstanceId", "InvocationDoesNotExist", "IncorrectInstanceState", "IncorrectState",
     "PriorRequestNotComplete", "DuplicateInstanceId"}
)  # fmt: skip
"""The object is there and not ready for this: certainly nothing was done."""
NEVER = (
    "Invalid", "Missing", "Malformed", "Unknown", "Unsupported", "Validation", "Idempotent",
    "Parameter", "Blocked", "QueueDoesNotExist", "MaxDocument", "DryRun", "AWS.SimpleQueueService",
)  # fmt: skip
"""How the codes begin that the same request will always get, success of a dry run among them."""
PERFORM = re.compile(r"perform:? ([a-z0-9-]+:\w+)")
PREFIX_OF = {
    "SendCommand": "ssm", "GetCommandInvocation": "ssm", "GetParameter": "ssm",
    "ReceiveMessage": "sqs", "DeleteMessage": "sqs", "GetProducts": "pricing", "AssumeRole": "sts",
}  # fmt: skip


def classify(error: BaseException) -> SubstrateError | None:
    """The class of an error; None for what AWS never said."""
    answer = getattr(error, "response", None)
    if isinstance(answer, Mapping) and isinstance(answer.get("Error"), Mapping):
        return _of_answer(str(getattr(error, "operation_name", "")), answer)
    name, module = type(error).__name__, type(error).__module__
    if module.startswith("botocore"):
        if name in ("NoCredentialsError", "CredentialRetrievalError", "PartialCredentialsError"):
            return Unauthorized(f"no usable credentials: {error}")
        if name == "ParamValidationError":
            return InvalidRequest(str(error))
    return None


def _of_answer(operation: str, answer: Mapping[str, Mapping[str, object]]) -> SubstrateError:
    code = str(answer["Error"].get("Code", ""))
    message = str(answer["Error"].get("Message", ""))
    text = f"{operation}: {code}: {message}"
    if code in THROTTLED:
        headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        after = headers.get("retry-after") if isinstance(headers, Mapping) else None
        return Retryable(text, throttled=True, after=float(after) if after else None)
    if code in OUT_OF_CAPACITY or (code == "Unsupported" and "Availability Zone" in message):
        return OutOfCapacity(text)
    if code in QUOTA:
        return QuotaExceeded(text)
    if code in NOT_ALLOWED:
        return Unauthorized(_remedy(operation, code, message) + text)
    if code in GONE:
        return Gone(text)
    if code in NOT_YET:
        return Retryable(text, refused=True)
    if code.startswith(NEVER):
        return InvalidRequest(text)
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
    return Retryable(text, refused=isinstance(status, int) and 400 <= status < 500)


def _remedy(operation: str, code: str, message: str) -> str:
    """What a person should look at first: the clock, or a permission by its name."""
    if code in CLOCK_CODES:
        return "check the credentials and that this machine's clock is right (NTP); "
    if code in ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException"):
        named = PERFORM.search(message)
        missing = named[1] if named else f"{PREFIX_OF.get(operation, 'ec2')}:{operation}"
        return f"missing permission {missing}; "
    return ""
