"""The agent of one guest: it polls the provider over HTTPS, as the shell script in the host does.

Polling is done here, because thousands of curl processes are too many for one machine. Everything
else is the real agent: the command is handed to `bigfleet-agent run`, the program that the user
data installed, and what it prints is the acknowledgement.
"""

import asyncio
import json
import shlex
import ssl
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from bigfleet_fakecloud.errors import FakeCloudError
from bigfleet_fakecloud.guests.folder import GuestFolder, Outcome

CONFIG, CA = "/etc/bigfleet-agent/config.json", "/etc/bigfleet-agent/ca.pem"
COMMAND = "/run/bigfleet/command.json"
PROGRAM = "/usr/local/sbin/bigfleet-agent"
LONG_POLL_S, PAUSE_S = 40.0, 0.1
LONGEST_PAUSE_S = 2.0
RunScript = Callable[[str], Awaitable[Outcome]]


class AgentLoop:
    """Polls for one guest until it is stopped."""

    def __init__(self, folder: Callable[[], GuestFolder], run_script: RunScript) -> None:
        self._folder = folder
        self._run_script = run_script
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False

    def stop(self) -> None:
        """End, from any thread."""
        self._stopped = True
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def run(self) -> None:
        """Poll and obey. A host whose user data brought no agent has nothing to do."""
        import aiohttp

        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._stopped:
            return
        try:
            folder = await asyncio.to_thread(self._folder)
        except FakeCloudError:
            return
        if not folder.path(CONFIG).exists():
            return
        config = json.loads(folder.path(CONFIG).read_text("utf-8"))
        trust = ssl.create_default_context(cafile=str(folder.path(CA)))
        async with aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {config['token']}"},
            timeout=aiohttp.ClientTimeout(total=LONG_POLL_S),
            connector=aiohttp.TCPConnector(ssl=trust),
        ) as session:
            query = f"machine_id={quote(config['machine_id'], safe='')}"
            # The program's own configuration names the hook by its path in the host.
            hook = f"BIGFLEET_HOOK={shlex.quote(config['hook'])}"
            agent = _Session(session, config["endpoint"], query, folder, hook, self._run_script)
            await agent.poll()


class _Session:
    """One agent with its connection."""

    def __init__(
        self,
        session: object,
        endpoint: str,
        query: str,
        folder: GuestFolder,
        hook: str,
        run_script: RunScript,
    ) -> None:
        import aiohttp

        assert isinstance(session, aiohttp.ClientSession)
        self._session = session
        self._endpoint = endpoint
        self._query = query
        self._folder = folder
        self._hook = hook
        self._run_script = run_script

    async def poll(self) -> None:
        pause = PAUSE_S
        while True:
            status, body = await self._ask("GET", "command", b"")
            if status == 200:
                pause = PAUSE_S
                await self._obey(body)
            elif status == 204:
                pause = PAUSE_S
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _obey(self, command: bytes) -> None:
        self._folder.put(COMMAND, command)
        outcome = await self._run_script(f"{self._hook} {PROGRAM} run {COMMAND}")
        if not outcome.stdout.strip():
            await asyncio.sleep(PAUSE_S)
            return
        pause = PAUSE_S
        while not 200 <= (await self._ask("POST", "ack", outcome.stdout.encode()))[0] < 500:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _ask(self, method: str, what: str, body: bytes) -> tuple[int, bytes]:
        """The status and body of a call; status 0 when there was no answer."""
        import aiohttp

        url = f"{self._endpoint}/v1/{what}?{self._query}"
        try:
            async with self._session.request(method, url, data=body or None) as answer:
                return answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return 0, b""
