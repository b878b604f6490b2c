"""How the errors of AWS become the kit's classes.

The class decides what happens next: Retryable is tried again, OutOfCapacity and QuotaExceeded fail
at once so that a shard takes another slot, Gone is success for a termination. The SDK is not
imported here: its errors are recognised by what they carry.
"""

import re
from collections.abc import Mapping
from typing import Any

from bigfleet_providerkit import InvalidRequest, OutOfCapacity, SubstrateError, Unauthorized
from bigfleet_providerkit.calls.error_codes import ErrorCodes

SERVICE_OF = {
    "SendCommand": "ssm", "GetCommandInvocation": "ssm", "GetParameter": "ssm",
    "ReceiveMessage": "sqs", "DeleteMessage": "sqs", "GetProducts": "pricing", "AssumeRole": "sts",
}  # fmt: skip
"""The services of calls that are not EC2's; policies name permissions by them too."""
CODES = ErrorCodes(
    throttled="""
        RequestLimitExceeded Throttling ThrottlingException ThrottledException
        TooManyRequestsException RequestThrottled RequestThrottledException SlowDown
        EC2ThrottledException RequestResourceCountExceeded""",
    out_of_capacity="""
        InsufficientInstanceCapacity InsufficientHostCapacity UnfulfillableCapacity
        InsufficientCapacity InsufficientReservedInstanceCapacity SpotMaxPriceTooLow
        ReservationCapacityExceeded InsufficientFreeAddressesInSubnet InsufficientCapacityOnHost
        SpotInstanceTermination""",
    quota="""
        VcpuLimitExceeded InstanceLimitExceeded MaxSpotInstanceCountExceeded VolumeLimitExceeded
        MaxIOPSLimitExceeded NetworkInterfaceLimitExceeded AddressLimitExceeded""",
    unauthorized="""
        UnauthorizedOperation AuthFailure ExpiredToken ExpiredTokenException RequestExpired
        RequestTimeTooSkewed AccessDenied AccessDeniedException InvalidClientTokenId
        UnrecognizedClientException InvalidSignatureException SignatureDoesNotMatch
        MissingAuthenticationToken OptInRequired KMSAccessDenied KmsAccessDenied""",
    gone="InvalidInstanceID.NotFound InvalidInstanceID",
    not_yet="""
        InvalidInstanceId InvocationDoesNotExist IncorrectInstanceState IncorrectState
        PriorRequestNotComplete DuplicateInstanceId""",
    # Success of a dry run among them.
    never="""
        Invalid Missing Malformed Unknown Unsupported Validation Idempotent Parameter Blocked
        QueueDoesNotExist MaxDocument DryRun AWS.SimpleQueueService""",
)
CLOCK_CODES = (
    "AuthFailure", "RequestExpired", "RequestTimeTooSkewed", "InvalidSignatureException",
    "SignatureDoesNotMatch",
)  # fmt: skip
PERMISSION_CODES = ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException")
PERFORM = re.compile(r"perform:? ([a-z0-9-]+:\w+)")


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


def _of_answer(operation: str, answer: Mapping[str, Any]) -> SubstrateError:
    code, message = (str(answer["Error"].get(part, "")) for part in ("Code", "Message"))
    text = f"{_remedy(operation, code, message)}{operation}: {code}: {message}"
    if code == "Unsupported" and "Availability Zone" in message:
        return OutOfCapacity(text)
    about = answer.get("ResponseMetadata", {})
    after = about.get("HTTPHeaders", {}).get("retry-after")
    pause = float(after) if after else None
    return CODES.error(code, text, status=int(about.get("HTTPStatusCode", 0)), after=pause)


def _remedy(operation: str, code: str, message: str) -> str:
    """What a person should look at first: the clock, or a permission by its name."""
    if code in CLOCK_CODES:
        return "check the credentials and that this machine's clock is right (NTP); "
    if code in PERMISSION_CODES:
        named = PERFORM.search(message)
        missing = named[1] if named else f"{SERVICE_OF.get(operation, 'ec2')}:{operation}"
        return f"missing permission {missing}; "
    return ""
