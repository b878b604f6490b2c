"""One mutant as an executable: `python -m mutantkit M113 --addr ...`; NONE is the reference.

TLS is looked at in a process of its own: its floor is a setting of the whole process, and a client
that is refused in the middle of a handshake must not meet its own server's threads.
"""

import sys

from mutantkit import PATCHES, Patch
from reference.config import OptionError, parse
from reference.server import run_forever
from reference.store import StoreError


def main() -> int:
    """Serve as the mutant of the first argument."""
    patch = PATCHES.get(sys.argv[1], Patch())
    try:
        config = parse(sys.argv[2:])
        run_forever(lambda: patch.server(patch.provider(config)))
    except (OptionError, StoreError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
