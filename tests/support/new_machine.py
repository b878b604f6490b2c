"""A machine of its own for a test: its ports are free, its names are those of a guide, and no
variable of ours is set.

It is a network namespace of Linux with a loopback interface, entered by every command. `hosts`
become names with an address of their own, so that what is written for several machines runs as it
is written, and a port that is bound to loopback only is seen to be so. Its /var/lib is empty and
its own. What runs in it is ended with it. Where the system allows no namespace, the test is skipped
and says why.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

ROOT: Final = Path(__file__).parents[2]
BIN: Final = Path(sys.executable).parent
NOT_OURS: Final = ("HOME", "LANG", "TERM", "TMPDIR", "USER")
"""The variables that a new user has as well."""
_LISTEN: Final = "0A"
_READY: Final = "ready"


class NewMachine:
    """From `with` to its end. `home` is where commands run, outside of the checkout."""

    def __init__(self, home: Path, hosts: Mapping[str, str] | None = None) -> None:
        self.home = home
        self._hosts = dict(hosts or {})
        self._enter: tuple[str, ...] = ()
        self._holder: subprocess.Popen[str] | None = None
        self._started: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._folder = Path(tempfile.mkdtemp(prefix="machine-"))

    def __enter__(self) -> Self:
        flags = ["-n", "-m"] if os.geteuid() == 0 else ["-r", "-n", "-m"]
        names = "".join(f"{address} {name}\n" for name, address in self._hosts.items())
        (self._folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}", encoding="ascii")
        lines = [
            "ip link set lo up",
            *(f"ip addr add {address}/32 dev lo" for address in self._hosts.values()),
            "mount -t tmpfs tmpfs /var/lib",
            f"mount --bind {self._folder / 'hosts'} /etc/hosts",
            f"echo {_READY}; exec sleep 3600",
        ]
        if not shutil.which("unshare") or not shutil.which("ip"):
            pytest.skip(
                "needs unshare and ip; install them with `apt-get install util-linux iproute2`"
            )
        self._holder = subprocess.Popen(
            ["unshare", *flags, "bash", "-ec", "\n".join(lines)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert self._holder.stdout is not None
        said = self._holder.stdout.readline().strip()
        if said != _READY:
            self.__exit__(None, None, None)
            pytest.skip(f"needs network namespaces, and this system refuses one: {said}")
        user = () if os.geteuid() == 0 else ("-U", "--preserve-credentials")
        self._enter = ("nsenter", "-t", str(self._holder.pid), *user, "-n", "-m")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for _, process in reversed(self._started):
            _signal(process, signal.SIGTERM)
        for _, process in self._started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()
            assert self._holder.stdout is not None
            self._holder.stdout.close()
        shutil.rmtree(self._folder)

    def environment(self) -> dict[str, str]:
        """What a new user's terminal has, and our commands by their names, as guides write them."""
        own = {name: os.environ[name] for name in NOT_OURS if name in os.environ}
        # Where compiled kernels are: a new user's own are compiled once, which is not tested here.
        cache = {"NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(ROOT / ".numba"))}
        path = f"{BIN}:{os.environ['PATH']}"
        return {**own, **cache, "PATH": path, "HOME": str(self.home), "NO_COLOR": "1"}

    def run(self, script: str, cwd: Path | None = None, seconds: float = 90) -> str:
        """What a script of bash shows; a failure repeats it."""
        done = subprocess.run(
            [*self._enter, "bash", "-euo", "pipefail", "-c", self._within(cwd, script)],
            env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=seconds, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (
            f"{script}\nended with {done.returncode}:\n{done.stdout[-4000:]}"
        )
        return done.stdout

    def start(self, command: str, cwd: Path | None = None) -> Path:
        """A command that serves until the machine ends; the file with what it says."""
        log = self._folder / f"{len(self._started)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*self._enter, "bash", "-c", self._within(cwd, command)],
                env=self.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip
        self._started.append((command, process))
        return log

    def _within(self, cwd: Path | None, script: str) -> str:
        # Entering another mount namespace leaves the folder one is in.
        return f"cd {shlex.quote(str(cwd or self.home))}\n{script}"

    def check_alive(self) -> None:
        """Every command that was started is still running, or has ended well."""
        for number, (command, process) in enumerate(self._started):
            said = (self._folder / f"{number}.log").read_text("utf-8", errors="replace")
            assert process.poll() in (None, 0), f"{command} ended:\n{said[-4000:]}"

    def stop(self, command: re.Pattern[str]) -> None:
        """As Ctrl-C does it: end the commands that look like this."""
        kept = []
        for words, process in self._started:
            if command.match(words.removeprefix("exec ")) and process.poll() is None:
                _signal(process, signal.SIGINT)
                process.wait(30)
                process.returncode = 0
            kept.append((words, process))
        self._started = kept

    def terminate(self, command: str) -> float:
        """Send SIGTERM to one command; after how many seconds all of it has ended."""
        process = next(each for words, each in self._started if words == command)
        begun = time.monotonic()
        _signal(process, signal.SIGTERM)
        process.wait(60)
        process.returncode = 0
        return time.monotonic() - begun

    def listening(self) -> set[tuple[str, int]]:
        """Every TCP socket that listens, as its address and port."""
        assert self._holder is not None
        found = set()
        for table in ("tcp", "tcp6"):
            lines = Path(f"/proc/{self._holder.pid}/net/{table}").read_text("ascii").splitlines()
            for fields in map(str.split, lines[1:]):
                if fields[3] == _LISTEN:
                    address, port = fields[1].split(":")
                    found.add((_address(address), int(port, 16)))
        return found


def _address(text: str) -> str:
    """What the kernel writes in words of four bytes, in the order of this processor."""
    raw = b"".join(bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8))
    if len(raw) == 4:
        return ".".join(map(str, raw))
    mapped = raw[:12] == b"\0" * 10 + b"\xff\xff"
    return ".".join(map(str, raw[12:])) if mapped else f"[{raw.hex()}]"


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
