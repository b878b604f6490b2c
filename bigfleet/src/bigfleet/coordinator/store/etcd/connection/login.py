"""The log-in: a token for a user name and a password, kept until a member refuses it.

The password is read from its file at each log-in, so that it can be changed without a restart.
Without a user name there is nothing to do.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from bigfleet.coordinator.store.errors import StoreSettingsError
from bigfleet.coordinator.store.etcdapi import rpc_pb2 as pb
from bigfleet.coordinator.store.etcdapi import rpc_pb2_grpc as rpc
from bigfleet.observe.process import Offload

Metadata = tuple[tuple[str, str], ...]
_WITH_LEADER: Metadata = (("hasleader", "true"),)


class Login:
    """The token in use."""

    def __init__(self, username: str, password_file: Path | None, offload: Offload) -> None:
        self._username = username
        self._password_file = password_file
        self._offload = offload
        self._one = asyncio.Lock()
        self._token = ""

    def metadata(self) -> Metadata:
        """What goes with every call."""
        if not self._token:
            return _WITH_LEADER
        return (*_WITH_LEADER, ("token", self._token))

    def forget(self) -> None:
        """The token is refused."""
        self._token = ""

    async def ensure(self, auth: rpc.AuthAsyncStub, seconds: float) -> None:
        """Have a token, when one is needed."""
        if not self._wanted():
            return
        async with self._one:
            if not self._wanted():
                return
            password = await self._offload(self._password)
            answer = await auth.Authenticate(
                pb.AuthenticateRequest(name=self._username, password=password),
                timeout=seconds,
                metadata=_WITH_LEADER,
            )
            self._token = answer.token

    def _wanted(self) -> bool:
        return self._password_file is not None and not self._token

    def _password(self) -> str:
        assert self._password_file is not None
        try:
            return self._password_file.read_text(encoding="utf-8").rstrip("\n")
        except OSError as error:
            raise StoreSettingsError(
                f"the password of etcd user {self._username} cannot be read: {error}"
            ) from error
