"""One guest: a folder that stands for the disk and /run of a host, and a shell in it.

Scripts run in a real /bin/sh in a process group of their own, so that a host that ends takes its
processes along. Absolute paths of the host are rewritten to the folder; `bin` holds stand-ins for
programs that would change this machine.
"""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from bigfleet_fakecloud.guests.user_data import read_user_data

HOOK = "opt/bigfleet/bootstrap"
# Not after a word, a dot or a closing brace: there a path goes on that began earlier.
_ABSOLUTE = re.compile(r"(?<![\w.})/])/(?=(?:run|opt|etc|var/lib|usr/local)/)")
_HOOK_TEXT = files("bigfleet_fakecloud.guests").joinpath("hook.sh").read_text("utf-8")
STAND_INS = {
    # A login that is not root runs its command through sudo -n.
    "sudo": '#!/bin/sh\n[ "$1" = -n ] && shift\nexec "$@"\n',
    "systemctl": '#!/bin/sh\necho "$*" >>"$GUEST/systemctl"\n',
    "systemd-run": '#!/bin/sh\necho "$*" >>"$GUEST/systemctl"\n',
}
MOST_OUTPUT = 64 * 1024
# A process that starts while a file is open for writing inherits the file until it executes its own
# program. Running the file meanwhile fails as "text file busy".
_FILES_AND_STARTS = threading.Lock()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a script ended."""

    exit_code: int
    stderr: str = ""
    stdout: str = ""


@dataclass(frozen=True, slots=True)
class HookRun:
    """One run of the stub hook, as it noted it: `what` is the cluster or the grace."""

    kind: str
    what: str
    exit_code: int
    blob_sha256: str = ""
    taints: str = ""
    provider_id: str = ""


class GuestFolder:
    """The inside of one host."""

    def __init__(self, root: Path, *, stub_hook: bool = True) -> None:
        self.root = root
        self.stub_hook = stub_hook
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def boot(self, user_data: bytes | str) -> None:
        """The first boot: files and scripts of the user data, then the stub hook."""
        (self.root / "bin").mkdir(parents=True, exist_ok=True)
        for name, text in STAND_INS.items():
            self.put(f"/bin/{name}", text.encode(), 0o755)
        first = read_user_data(user_data)
        for path, (content, mode) in first.files.items():
            # What is run later names paths of the host, just as a script that comes later does.
            program = self.translate(content.decode()).encode() if mode & 0o111 else content
            self.put(path, program, mode)
        for script in first.scripts:
            self.run(script)
        if self.stub_hook:
            self.put("/" + HOOK, _HOOK_TEXT.encode(), 0o755)

    def restart(self) -> None:
        """A reboot: what runs ends, and /run is empty; the disk stays."""
        self.close()
        run = self.root / "run"
        for path in sorted(run.rglob("*"), reverse=True) if run.exists() else ():
            path.rmdir() if path.is_dir() else path.unlink()
        self._closed = False

    def path(self, absolute: str) -> Path:
        """Where a path of the host is."""
        return self.root / absolute.lstrip("/")

    def put(self, path: str, content: bytes, mode: int = 0o600, *, append: bool = False) -> None:
        """Write or extend a file of the host."""
        where = self.path(path)
        where.parent.mkdir(parents=True, exist_ok=True)
        with _FILES_AND_STARTS, where.open("ab" if append else "wb") as file:
            file.write(content)
        where.chmod(mode)

    def run(
        self, script: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> Outcome:
        """Run a script to its end; blocks, so the engine calls it on a thread."""
        env = {
            "PATH": f"{self.root}/bin:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.root), "GUEST": str(self.root), **(environment or {}),
        }  # fmt: skip
        with self._lock:
            if self._closed:
                return Outcome(255, "the host is down")
            with _FILES_AND_STARTS:
                process = subprocess.Popen(
                    ["/bin/sh", "-c", self.translate(script)], cwd=self.root, env=env,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    start_new_session=True,
                )  # fmt: skip
            self._running.add(process)
        try:
            out, err = process.communicate(stdin)
        finally:
            with self._lock:
                self._running.discard(process)
        return Outcome(process.returncode, _text(err), _text(out))

    def translate(self, script: str) -> str:
        """A script with the host's absolute paths made those of the folder."""
        return _ABSOLUTE.sub(f"{self.root}/", script)

    def close(self) -> None:
        """End what runs."""
        with self._lock:
            self._closed = True
            for process in self._running:
                # The leader of the group may have ended while a child of it still runs.
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue

    @property
    def cluster(self) -> str:
        """The cluster that the host belongs to, or an empty text."""
        return self._read("var/lib/bigfleet/cluster")

    @property
    def history(self) -> list[HookRun]:
        """What the stub hook did, in its order."""
        rows = [line.split("|") for line in self._read("history").splitlines()]
        return [HookRun(row[0], row[1], int(row[2]), *row[3:6]) for row in rows]

    def _read(self, name: str) -> str:
        try:
            return (self.root / name).read_text("utf-8")
        except FileNotFoundError:
            return ""


def _text(output: bytes) -> str:
    return output[-MOST_OUTPUT:].decode(errors="replace")
