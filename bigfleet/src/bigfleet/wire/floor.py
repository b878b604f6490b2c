"""TLS 1.3 or newer, for a library that has no setting for it.

grpcio offers TLS 1.2 and 1.3. A cipher suite that exists below 1.3 only, and that no peer ever
picks, leaves 1.2 with nothing to agree on and 1.3 as it was. The variable is read when grpc starts,
so this module has to be imported before it.
"""

import os

os.environ.setdefault("GRPC_SSL_CIPHER_SUITES", "PSK-AES128-CBC-SHA")
