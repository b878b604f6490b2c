"""What is wrong with the certificates between this process and a server, in words and a remedy.

gRPC says of most of it that the connection was closed. A command that could not connect asks here
once: the files are looked at, and the server is greeted a second time with the TLS of Python, which
says what it did not like. Nothing is sent after the greeting. Dialling itself is in `channel`.
"""

from __future__ import annotations

import re
import socket
import ssl
from datetime import UTC, datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from bigfleet.wire.errors import TlsFilesError
from bigfleet.wire.tls import TlsFiles
from bigfleet_base.addresses import AddressError, Endpoint

_GREETING_SECONDS: Final = 2.0
_EXPIRED: Final = 10
_NOT_YET: Final = 9
_UNTRUSTED: Final = (18, 19, 20, 21)
_OTHER_NAME: Final = (62, 64)
"""Results of X.509 verification, as OpenSSL numbers them."""
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
_MISSING: Final = "it speaks TLS, and no certificate was given: add --tls-cert, --tls-key, --tls-ca"
_PLAINTEXT: Final = "it speaks plaintext: leave --tls-cert, --tls-key and --tls-ca out"


class _ServerClosedError(Exception):
    """The greeting was done, and the server said nothing and closed."""


def certificate_trouble(address: str, files: TlsFiles | None) -> str:
    """What is wrong and what to do; empty where it is not the certificates."""
    try:
        where = Endpoint.parse(address)
        if files is None:
            return _greet_without_certificate(where)
        return _trouble_of_files(files) or _greet(where, files)
    except (AddressError, TlsFilesError, OSError):
        # There is no connection at all, or no files: the caller says so itself.
        return ""


def _greet_without_certificate(where: Endpoint) -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        _handshake(where, context)
    except ssl.SSLError as error:
        return "" if _is_plaintext(error) else _MISSING
    except _ServerClosedError:
        pass
    return _MISSING


def _greet(where: Endpoint, files: TlsFiles) -> str:
    context = ssl.create_default_context(cafile=str(files.ca))
    context.load_cert_chain(files.cert, files.key)
    context.set_alpn_protocols(["h2"])
    try:
        _handshake(where, context)
    except ssl.SSLCertVerificationError as error:
        return _trouble_of_server(error.verify_code, where.host, files)
    except ssl.SSLError as error:
        if _is_plaintext(error):
            return _PLAINTEXT
        return _refusal(error.reason or "", files)
    except (_ServerClosedError, ConnectionResetError):
        return _foreign(files)
    return ""


def _handshake(where: Endpoint, context: ssl.SSLContext) -> None:
    """With TLS 1.3 a server judges our certificate after our part is done: its answer is read."""
    with (
        socket.create_connection((where.host, where.port), _GREETING_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=where.host) as secure,
    ):
        if not secure.recv(1):
            raise _ServerClosedError


def _is_plaintext(error: ssl.SSLError) -> bool:
    return error.reason in _NO_TLS


def _trouble_of_files(files: TlsFiles) -> str:
    contents = files.contents()
    now = datetime.now(UTC).timestamp()
    for path, ends in ((files.cert, contents.cert_ends), (files.ca, contents.ca_ends)):
        if ends < now:
            when = datetime.fromtimestamp(ends, UTC)
            return f"{path} expired at {when:%Y-%m-%d %H:%M} UTC: renew it"
    return ""


def _trouble_of_server(code: int, host: str, files: TlsFiles) -> str:
    if code == _EXPIRED:
        return "its certificate has expired: renew the certificate of the server"
    if code == _NOT_YET:
        return "its certificate is not valid yet: compare the clocks of both machines"
    if code in _UNTRUSTED:
        return (
            f"its certificate is not issued by a CA of {files.ca}: give the CA of the fleet with "
            "--tls-ca"
        )
    if code in _OTHER_NAME:
        return f"its certificate does not name {host}: dial it by a name of its certificate"
    return f"its certificate is refused here (X.509 error {code})"


def _refusal(reason: str, files: TlsFiles) -> str:
    """What the server says of our certificate."""
    if "EXPIRED" in reason:
        return f"it refuses {files.cert}, which has expired: renew it"
    if "UNKNOWN_CA" in reason or "CERTIFICATE" in reason:
        return f"it refuses {files.cert}: use a certificate that the CA of the fleet issued"
    return _foreign(files)


def _foreign(files: TlsFiles) -> str:
    """The server closed the connection without a word: ours to find out."""
    contents = files.contents()
    mine = x509.load_pem_x509_certificates(contents.cert)
    issuers = [*x509.load_pem_x509_certificates(contents.ca), *mine[1:]]
    if any(_issued(mine[0], issuer) for issuer in issuers):
        return ""
    return (
        f"it closed the connection, and {files.cert} is not issued by a CA of {files.ca}: use a "
        "certificate that the CA of the fleet issued"
    )


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


# Why there is no connection, in our words: gRPC tells it in those of its C library.

_TRANSPORT: Final = re.compile(
    r"failed to connect|connection|socket|dns|resol|ipv[46]:|handshake|goaway|unreachable",
    re.IGNORECASE,
)
_CAUSES: Final = (
    (r"connection refused", "no process listens there"),
    (r"name or service not known|domain name|dns|resol", "the name cannot be resolved"),
    (r"ssl|handshake|certificate|tls", "the TLS handshake failed: check --tls-ca and its names"),
    (r"no route|unreachable", "there is no way to that host"),
    (r"socket closed|reset|endpoint closing", "it closed the connection"),
)
_BARE: Final = {
    "CANCELLED": "the call was cancelled",
    "DEADLINE_EXCEEDED": "no answer in time",
    "PERMISSION_DENIED": "it refuses",
    "UNIMPLEMENTED": "it cannot do this",
    "UNAVAILABLE": "no connection",
}


def of_transport(detail: str) -> bool:
    """Whether the detail of UNAVAILABLE is the library's own, and not what a peer says."""
    return not detail or _TRANSPORT.search(detail) is not None


def cause(detail: str) -> str:
    """Why there is no connection, without the library's words where possible."""
    last = detail.rpartition("last error: ")[2] or "no connection"
    for pattern, words in _CAUSES:
        if re.search(pattern, last, re.IGNORECASE):
            return words
    return last


def shortly(code: str, detail: str) -> str:
    """A failed call in a few words."""
    text = " ".join(detail.split())
    if code == "UNAVAILABLE" and of_transport(text):
        return cause(text)
    return text or _BARE.get(code, code)
