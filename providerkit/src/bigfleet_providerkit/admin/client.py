"""The other end of the admin socket: what `inspect`, `sweep` and `release` print."""

import json
import socket
from pathlib import Path

from bigfleet_providerkit.admin.server import socket_path
from bigfleet_providerkit.errors import OptionError, StartError

SECONDS = 120.0


def request_of(words: list[str]) -> dict[str, object]:
    """The request behind the words of a command line."""
    command, *rest = words
    if command == "sweep":
        return {"command": "sweep", "yes": "yes" in rest}
    if command == "release" and not rest:
        raise OptionError("release needs the id of a machine")
    return {"command": command, "machine": rest[0] if rest else ""}


def ask(state: str | None, words: list[str]) -> dict[str, object]:
    """Send one command to the running process; its answer."""
    if state in (None, "memory"):
        raise OptionError(f"{words[0]} needs --state, the path of the running provider's state")
    path = socket_path(Path(str(state)))
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(SECONDS)
            connection.connect(str(path))
            connection.sendall(json.dumps(request_of(words)).encode() + b"\n")
            answer = connection.makefile("rb").readline()
    except TimeoutError as error:
        raise StartError(
            f"{words[0]} has not ended within {SECONDS:.0f} s; it goes on in the provider, whose "
            "log tells how it ends"
        ) from error
    except OSError as error:
        raise StartError(f"no provider answers on {path}: {error}; is it running?") from error
    if not answer:
        raise StartError(f"the provider on {path} ended before it answered {words[0]}")
    return dict(json.loads(answer))
