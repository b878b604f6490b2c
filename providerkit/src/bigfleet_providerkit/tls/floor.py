"""TLS 1.3 or newer, for a library that has no setting for it.

grpcio offers TLS 1.2 and 1.3. With a cipher suite that exists below 1.3 only and that nobody
negotiates, 1.2 is left without a usable cipher and 1.3, whose suites are set elsewhere, works. The
variable is read when grpc starts, so this module must be imported before it.
"""

import os

os.environ.setdefault("GRPC_SSL_CIPHER_SUITES", "PSK-AES128-CBC-SHA")
