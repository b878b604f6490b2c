"""Environment variables that gRPC reads when it is imported; import this module first.

TLS 1.3 or newer, for a library that has no setting for it: grpcio offers TLS 1.2 and 1.3. A cipher
suite that exists below 1.3 only, and that no peer ever picks, leaves 1.2 without a common suite and
1.3 as it was. A value that is already set is replaced: it would bring 1.2 back.

No output of its C library: we log its errors ourselves, in words. Set GRPC_VERBOSITY to see it.
"""

import os

os.environ["GRPC_SSL_CIPHER_SUITES"] = "PSK-AES128-CBC-SHA"
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
