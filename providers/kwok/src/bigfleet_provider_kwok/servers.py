"""API servers by cluster: found in a kubeconfig, in the bootstrap data, or one for all.

What a host was told is remembered by the host, as a kubelet keeps its kubeconfig, so that it can
leave the cluster again after the provider was restarted. A kubeconfig is read again whenever it
changed, and is what to use where tokens are short-lived.
"""

import asyncio
import base64
import binascii
import ssl
from dataclasses import dataclass
from pathlib import Path

from bigfleet_provider_kwok.api import NodeApi
from bigfleet_provider_kwok.join import Join
from bigfleet_providerkit import InvalidRequest
from bigfleet_providerkit.readiness.kube import Access, read_kubeconfig


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cluster's API server is: of a file, of bootstrap data, or the one for all."""

    kubeconfig: str = ""
    server: str = ""
    ca: str = ""
    token: str = ""


class Servers:
    """Connections to API servers, made when they are first needed."""

    def __init__(self, folder: Path | None, one_for_all: str | None) -> None:
        self._folder = folder
        self._one_for_all = (one_for_all or "").rstrip("/")
        self._open: dict[Place, tuple[float, NodeApi]] = {}

    @property
    def reads_bootstrap_data(self) -> bool:
        """Whether the bootstrap data says where to go; not with one API server for all."""
        return not self._one_for_all

    def place(self, join: Join, cluster: str) -> Place:
        """Where a host with this bootstrap data goes."""
        if self._one_for_all:
            return Place(server=self._one_for_all)
        if join.server:
            return Place(server=join.server, ca=join.ca, token=join.token)
        return Place(kubeconfig=join.kubeconfig or cluster)

    def watched(self, cluster: str) -> bool:
        """Whether the kit itself looks at this cluster's nodes."""
        return self._folder is not None and (self._folder / f"{cluster}.yaml").is_file()

    async def of(self, place: Place) -> NodeApi:
        """The connection to a place; a new one when its kubeconfig changed."""
        changed, text = 0.0, ""
        if place.kubeconfig:
            changed, text = await asyncio.to_thread(self._read, place.kubeconfig)
        known = self._open.get(place)
        if known is not None and known[0] == changed:
            return known[1]
        access = _from_file(place.kubeconfig, text) if place.kubeconfig else _from_data(place)
        self._open[place] = (changed, NodeApi(access))
        if known is not None:
            await known[1].aclose()
        return self._open[place][1]

    async def aclose(self) -> None:
        """Let go of all connections."""
        for _, api in self._open.values():
            await api.aclose()

    def _read(self, name: str) -> tuple[float, str]:
        if self._folder is None:
            raise InvalidRequest(
                f"the bootstrap data asks for kubeconfig {name!r}; give --cluster-kubeconfigs DIR, "
                "or put server, certificateAuthorityData and token into the bootstrap data"
            )
        if "/" in name or "\0" in name or name.startswith("."):
            raise InvalidRequest(f"{name!r} is not the name of a kubeconfig")
        path = self._folder / f"{name}.yaml"
        try:
            return path.stat().st_mtime, path.read_text("utf-8")
        except OSError as error:
            raise InvalidRequest(f"kubeconfig {path} cannot be read: {error.strerror}") from error


def _from_file(name: str, text: str) -> Access:
    try:
        return read_kubeconfig(text)
    except (ValueError, OSError, KeyError) as error:
        raise InvalidRequest(f"kubeconfig {name!r} cannot be used: {error}") from error


def _from_data(place: Place) -> Access:
    headers = {"Authorization": f"Bearer {place.token}"} if place.token else {}
    if not place.server.startswith("https"):
        return Access(place.server, False, headers)
    try:
        ca = base64.b64decode(place.ca, validate=True).decode() if place.ca else None
        return Access(place.server, ssl.create_default_context(cadata=ca), headers)
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
        raise InvalidRequest(f"the CA of {place.server} cannot be used: {error}") from error
