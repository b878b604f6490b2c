"""TLS for clouds whose SDK refuses plain HTTP: a certificate authority for one test.

`TestAuthority` issues a certificate for this machine and writes its own to a file; the provider
trusts it by that file (`SSL_CERT_FILE`, `REQUESTS_CA_BUNDLE`, or an option of its own).
"""

import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TestAuthority:
    """The files of one authority and of the certificate that it issued for the cloud."""

    __test__ = False

    ca: Path
    certificate: Path
    key: Path

    @staticmethod
    def make(folder: Path, *names: str) -> "TestAuthority":
        """Issue a certificate for 127.0.0.1, localhost and further names."""
        # Only a cloud that is served over TLS needs the library.
        import trustme

        folder.mkdir(parents=True, exist_ok=True)
        authority = trustme.CA()
        leaf = authority.issue_cert("127.0.0.1", "localhost", *names)
        made = TestAuthority(folder / "ca.pem", folder / "cloud.pem", folder / "cloud.key")
        authority.cert_pem.write_to_path(made.ca)
        leaf.private_key_pem.write_to_path(made.key)
        for number, part in enumerate(leaf.cert_chain_pems):
            part.write_to_path(made.certificate, append=number > 0)
        return made

    def client_context(self) -> ssl.SSLContext:
        """What a client needs to trust the cloud."""
        return ssl.create_default_context(cafile=str(self.ca))
