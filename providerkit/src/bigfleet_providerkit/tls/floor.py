"""What grpc has to find in the environment when it starts, so this is imported before it.

TLS 1.3 or newer, for a library that has no setting for it: grpcio offers TLS 1.2 and 1.3. With a
cipher suite that exists below 1.3 only and that no client negotiates, 1.2 is left without a usable
cipher and 1.3, whose suites are set elsewhere, works. What the environment says of it does not
count: it would bring 1.2 back.

Silence of its C library: what that writes to stderr we say ourselves, in words. To look for a fault
in it, set GRPC_VERBOSITY.
"""

import os

os.environ["GRPC_SSL_CIPHER_SUITES"] = "PSK-AES128-CBC-SHA"
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
