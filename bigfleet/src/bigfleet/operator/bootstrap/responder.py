"""BootstrapRequest -> BootstrapBlobResponse, many at once, none behind other work.

Whatever goes wrong is an answer with an error: the shard then keeps the machine Idle and says why
the need is unmet. The life of the data is that of the shortest token in it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from bigfleet.kube import KubeError
from bigfleet.operator.bootstrap.template import BootstrapTemplate, Mint
from bigfleet.operator.bootstrap.tokens import LIFE_SECONDS
from bigfleet.operator.errors import TemplateError, UnsatisfiableError
from bigfleet_api.v1alpha1 import shard_pb2 as pb

AT_ONCE: Final = 32
DEADLINE_SECONDS: Final = 20.0
"""Within the shard's thirty, waiting for a turn included: a later token would not be used."""
STUB: Final = b"#!/bin/sh\n# No bootstrap template is configured: this machine joins nothing.\n"
Answer = Callable[[pb.OperatorMessage], None]
_log = logging.getLogger(__name__)


class BootstrapMetrics(Protocol):
    """What is counted."""

    def bootstrap_answered(self, outcome: str) -> None:
        """success, unsatisfiable or error."""


class Bootstrap:
    """Answers for bootstrap data. Without a template it gives a stub, for tests and first steps."""

    def __init__(
        self, template: BootstrapTemplate | None, mint: Mint, counts: BootstrapMetrics
    ) -> None:
        self._template, self._mint, self._counts = template, mint, counts
        self._room = asyncio.Semaphore(AT_ONCE)

    async def answer(self, request: pb.BootstrapRequest, answer: Answer) -> None:
        response = pb.BootstrapBlobResponse(request_id=request.request_id)
        outcome = "success"
        try:
            async with asyncio.timeout(DEADLINE_SECONDS), self._room:
                response.user_data, response.ttl_seconds = await self._data(request)
        except UnsatisfiableError as error:
            outcome, response.error = "unsatisfiable", str(error)
        except (TemplateError, KubeError, TimeoutError) as error:
            outcome = "error"
            response.error = str(error) or "the API server did not answer in time"
        if response.error:
            _log.warning(
                "bootstrap data not made",
                extra={"machine": request.machine.machine_id, "error": response.error},
            )
        self._counts.bootstrap_answered(outcome)
        answer(pb.OperatorMessage(bootstrap_response=response))

    async def _data(self, request: pb.BootstrapRequest) -> tuple[bytes, int]:
        if self._template is None:
            return STUB, 0
        minted: list[str] = []

        async def mint(groups: str) -> str:
            minted.append(await self._mint(groups))
            return minted[-1]

        data = await self._template.render(request, mint)
        return data, LIFE_SECONDS if minted else 0
