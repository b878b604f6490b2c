"""The command channel: the cloud itself runs a script on the host.

Where the cloud keeps the command's text, the blob goes sealed: the host makes a key pair in tmpfs
and prints its certificate, gets the blob as CMS ciphertext in chunks, opens it with openssl and
drops the key. Only ciphertext passes the cloud's command history.
"""

import base64
import textwrap
from collections.abc import Awaitable, Callable

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs7

from bigfleet_providerkit.errors import HookFailed, InvalidRequest
from bigfleet_providerkit.substrate import CommandKind, Host, HostCommand, HostResult

RunScript = Callable[[Host, str, float], Awaitable[HostResult]]
CHUNK = 3000
FOLDER = "/run/bigfleet"


def key_script(folder: str = FOLDER) -> str:
    """Makes a key pair on the host and prints its certificate."""
    return textwrap.dedent(f"""\
        set -eu
        umask 077
        mkdir -p {folder}
        rm -f {folder}/seal.*
        openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=bigfleet \\
            -keyout {folder}/seal.key -out {folder}/seal.pem 2>/dev/null
        cat {folder}/seal.pem
        """)


def chunk_script(part: str, folder: str = FOLDER) -> str:
    """Appends one piece of ciphertext."""
    return f"set -eu\numask 077\nprintf '%s\\n' '{part}' >>{folder}/seal.b64\n"


def open_script(script: str, folder: str = FOLDER) -> str:
    """Opens the ciphertext, drops the key and runs the wrapper on what was inside."""
    return textwrap.dedent(f"""\
        umask 077
        openssl base64 -d -in {folder}/seal.b64 -out {folder}/seal.cms &&
            openssl cms -decrypt -inform DER -in {folder}/seal.cms \\
                -inkey {folder}/seal.key -recip {folder}/seal.pem -out {folder}/seal.blob
        bigfleet_opened=$?
        rm -f {folder}/seal.key {folder}/seal.pem {folder}/seal.b64 {folder}/seal.cms
        if [ "$bigfleet_opened" -ne 0 ]; then rm -f {folder}/seal.blob; exit 75; fi
        """) + script.replace("BIGFLEET_BLOB_FROM=stdin", f"BIGFLEET_BLOB_FROM={folder}/seal.blob")


def seal(blob: bytes, certificate: str) -> bytes:
    """The blob as CMS ciphertext for one certificate."""
    start = certificate.find("-----BEGIN CERTIFICATE-----")
    if start < 0:
        raise HookFailed("the host printed no certificate to seal the bootstrap data with")
    parsed = x509.load_pem_x509_certificate(certificate[start:].encode())
    builder = pkcs7.PKCS7EnvelopeBuilder().set_data(blob).add_recipient(parsed)
    return builder.encrypt(serialization.Encoding.DER, [pkcs7.PKCS7Options.Binary])


class CommandChannel:
    """Runs the wrapper through a cloud's command API, with a sealed blob."""

    def __init__(
        self,
        run_script: RunScript,
        *,
        most_chunks: int = 24,
        chunk: int = CHUNK,
        folder: str = FOLDER,
    ) -> None:
        self._run_script = run_script
        self._most_chunks = most_chunks
        self._chunk = chunk
        self._folder = folder

    async def run(self, host: Host, command: HostCommand) -> HostResult:
        """One command, in as many calls as its blob needs."""
        if command.kind is not CommandKind.CONFIGURE:
            return await self._run_script(host, command.script, command.limit)
        made = await self._run_script(host, key_script(self._folder), command.limit)
        if made.exit_code != 0:
            return made
        text = base64.b64encode(seal(command.secret, made.stdout)).decode()
        parts = in_chunks(textwrap.wrap(text, 64), self._chunk)
        if len(parts) > self._most_chunks:
            raise InvalidRequest(f"the bootstrap data needs {len(parts)} pieces; too large")
        for part in parts:
            sent = await self._run_script(host, chunk_script(part, self._folder), command.limit)
            if sent.exit_code != 0:
                return sent
        script = open_script(command.script, self._folder)
        return await self._run_script(host, script, command.limit)


def in_chunks(lines: list[str], most: int = CHUNK) -> list[str]:
    """Pieces of at most so many characters that end at line ends."""
    parts: list[str] = []
    for line in lines:
        if parts and len(parts[-1]) + 1 + len(line) <= most:
            parts[-1] += "\n" + line
        else:
            parts.append(line)
    return parts
