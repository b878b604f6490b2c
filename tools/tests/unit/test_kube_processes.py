"""Programs of a control plane: they end with the process that started them."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from kube.certificates import Authority
from kube.processes import Process, ProcessDiedError

TOOLS = Path(__file__).parents[2]
PARENT = """
import sys, threading
from pathlib import Path
from kube.processes import Process
process = Process("sleep", ["/bin/sleep", "600"], Path(sys.argv[1]))
# Started from a thread that ends at once: the program must not end with it.
thread = threading.Thread(target=process.start)
thread.start()
thread.join()
print(process.pid, flush=True)
sys.stdin.read()
"""


def lives(pid: int) -> bool:
    """Whether a process is there and is not a zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except FileNotFoundError:
        return False


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_killed_parent_takes_its_programs_along(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(TOOLS)},
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert lives(child)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        until(lambda: not lives(child))


def test_a_program_is_stopped_killed_and_started_again(tmp_path: Path) -> None:
    process = Process("sleep", ["/bin/sleep", "600"], tmp_path / "log")
    pids = [process.pid]
    for step in (process.start, process.start, process.stop, process.start, process.kill):
        step()
        pids.append(process.pid)
    before, first, same, stopped, second, killed = pids
    assert (before, stopped, killed) == (None, None, None)
    assert first is not None
    assert first == same != second is not None


def test_a_program_that_ended_by_itself_is_quoted(tmp_path: Path) -> None:
    process = Process("sh", ["/bin/sh", "-c", "echo no such flag; exit 3"], tmp_path / "log")
    process.start()

    until(lambda: "no such flag" in process.tail())
    until(lambda: process.pid is not None and not lives(process.pid))
    with pytest.raises(ProcessDiedError, match=r"sh ended with 3; .* says:\nno such flag"):
        process.check()
    process.kill()


def test_certificates_name_loopback_and_the_user() -> None:
    authority = Authority("test")
    server = x509.load_pem_x509_certificate(authority.server().certificate)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "127.0.0.1" in [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    user = x509.load_pem_x509_certificate(authority.user("me", "us").certificate)
    assert user.subject.rfc4514_string() == "O=us,CN=me"
