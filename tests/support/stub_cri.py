"""A container runtime that runs nothing, for a real kubelet whose node becomes Ready.

Says of itself that runtime and network are ready, and that cgroups are driven by the kubelet; every
other call of the Container Runtime Interface gets an answer without content. The few fields are
written by hand, since the interface's definition is not part of this repository.

    python stub_cri.py SOCKET
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

VARINT, BYTES = 0, 2
CGROUPFS = 1


def field(number: int, value: int | str | bytes) -> bytes:
    """One field of a protobuf message; numbers and lengths stay below 2^14 here."""
    if isinstance(value, int):
        return bytes([number << 3 | VARINT]) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | BYTES]) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    written = b""
    while value > 127:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])


def condition(name: str) -> bytes:
    """One condition of the runtime that holds."""
    return field(1, field(1, name) + field(2, 1))


STATUS = field(1, condition("RuntimeReady") + condition("NetworkReady"))
FILE_SYSTEM = field(2, field(1, "/")) + field(3, field(1, 1)) + field(4, field(1, 1))
ANSWERS = {
    "Version": field(1, "0.1.0") + field(2, "stub") + field(3, "1.0.0") + field(4, "v1"),
    "Status": STATUS,
    "RuntimeConfig": field(1, field(1, CGROUPFS)),
    "ImageFsInfo": field(1, FILE_SYSTEM) + field(2, FILE_SYSTEM),
    "RunPodSandbox": field(1, "nothing-runs-here"),
}


class Runtime(grpc.GenericRpcHandler):
    """Answers every call that there is."""

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """The handler of a method, whatever its service."""
        name = str(handler_call_details.method).rpartition("/")[2]
        return grpc.unary_unary_rpc_method_handler(lambda request, _: ANSWERS.get(name, b""))


def main(socket: str) -> None:
    """Serve until killed."""
    # The path of a socket has at most 107 characters, fewer than some temporary folders have.
    place = Path(socket)
    os.chdir(place.parent)
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Runtime(),))
    server.add_insecure_port(f"unix:{place.name}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1])
