"""Mutants of TLS, identity and health (M113-M117)."""

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from mutantkit.registry import broken
from reference.provider import Call, Provider
from reference.reads import RefusedError
from reference.server import Context, Server, TlsFiles


class Lax(TlsFiles):
    """Anybody may come without a certificate."""

    def requires_client(self) -> bool:
        return False


@broken("M113")
class CertificateNotRequired(Server):
    tls_type = Lax

    def identity(self, context: Context) -> str | None:
        return None


@broken("M114")
class SanNotCompared(Provider):
    def identify(self, call: Call) -> pb.TransitionAck | None:
        return None


@broken("M115")
class RefusedIdentityMovesMark(Provider):
    def identify(self, call: Call) -> pb.TransitionAck | None:
        try:
            return super().identify(call)
        except RefusedError:
            request = call.request
            token = (request.shard_epoch, request.sequence_number)
            self.move_mark(self.fence_key(call), token)
            raise


class ReadOnce(TlsFiles):
    """The files of the start, forever."""

    def current(self) -> None:
        return None


@broken("M116")
class CertificatesReadOnce(Server):
    tls_type = ReadOnce


@broken("M117")
class NoHealth(Server):
    serves_health = False
