"""Bootstrap tokens: a Secret each, in the form kubeadm and k3s know, that ends by itself.

Kubernetes deletes such Secrets when they have expired. One token per machine, so that one that
leaks is of little use, and none is looked at twice.
"""

from __future__ import annotations

import string
from datetime import UTC, datetime
from random import Random
from typing import Final

from bigfleet.kube import AlreadyExistsError, KubeClient
from bigfleet.kube.objects import SECRETS
from bigfleet.observe.process import Clock

LIFE_SECONDS: Final = 15 * 60
NAMESPACE: Final = "kube-system"
DEADLINE_SECONDS: Final = 10.0
_NS: Final = 1_000_000_000
_ALPHABET: Final = string.ascii_lowercase + string.digits


class Tokens:
    """Mints tokens. `rng` has to be unpredictable."""

    def __init__(self, client: KubeClient, clock: Clock, rng: Random) -> None:
        self._client, self._clock, self._rng = client, clock, rng

    async def mint(self, groups: str) -> str:
        """A new token, `<6 characters>.<16 characters>`."""
        while True:
            token_id, secret = self._word(6), self._word(16)
            try:
                await self._client.create(
                    SECRETS,
                    self._body(token_id, secret, groups),
                    NAMESPACE,
                    deadline=DEADLINE_SECONDS,
                )
            except AlreadyExistsError:
                continue
            return f"{token_id}.{secret}"

    def _word(self, length: int) -> str:
        return "".join(self._rng.choices(_ALPHABET, k=length))

    def _body(self, token_id: str, secret: str, groups: str) -> dict[str, object]:
        ends = datetime.fromtimestamp(self._clock.now() // _NS + LIFE_SECONDS, UTC)
        return {
            "metadata": {"name": f"bootstrap-token-{token_id}", "namespace": NAMESPACE},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": {
                "token-id": token_id,
                "token-secret": secret,
                "expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "usage-bootstrap-authentication": "true",
                "usage-bootstrap-signing": "true",
                "auth-extra-groups": groups,
                "description": "Made by the BigFleet operator for one machine.",
            },
        }
