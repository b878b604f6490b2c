"""The reference provider as an executable: `python -m reference --addr ...`."""

import os
import sys

# grpcio has no setting for the TLS floor; without a usable cipher TLS 1.2 is refused.
os.environ.setdefault("GRPC_SSL_CIPHER_SUITES", "PSK-AES128-CBC-SHA")

from reference.config import Config, OptionError, parse
from reference.provider import Provider
from reference.server import Server, run_forever
from reference.store import StoreError


def main() -> int:
    """Serve until told to end; what is wrong is one line."""
    try:
        config = parse(sys.argv[1:])
        run_forever(lambda: server_for(config))
    except OptionError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except StoreError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def server_for(config: Config) -> Server:
    """The reference provider, without a patch."""
    return Server(Provider(config))


if __name__ == "__main__":
    sys.exit(main())
