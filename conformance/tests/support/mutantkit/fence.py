"""Mutants of the fence and of what is checked before it (M001-M015, M127, M128, M140)."""

import grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from mutantkit.registry import broken
from reference.provider import Call, Provider, Request
from reference.reads import RefusedError

Code = grpc.StatusCode
Key = tuple[str, str]
Mark = tuple[int, int]


@broken("M001")
class MarkPerShard(Provider):
    def fence_key(self, call: Call) -> Key:
        return (call.request.shard_id, "")


@broken("M002")
class EqualTokenAccepted(Provider):
    def newer(self, token: Mark, mark: Mark) -> bool:
        return token >= mark


@broken("M003")
class EpochDoesNotRestart(Provider):
    def newer(self, token: Mark, mark: Mark) -> bool:
        return token[0] >= mark[0] and token[1] > mark[1]


@broken("M004")
class NoFence(Provider):
    def fence(self, call: Call) -> pb.TransitionAck | None:
        return None


@broken("M005")
class FirstTokenStays(Provider):
    def move_mark(self, key: Key, token: Mark) -> None:
        if self.mark(key) is None:
            super().move_mark(key, token)


@broken("M006")
class ZeroTokenFenced(Provider):
    def fence(self, call: Call) -> pb.TransitionAck | None:
        request = call.request
        if not request.shard_id and (request.shard_epoch, request.sequence_number) == (0, 0):
            key = self.fence_key(call)
            if self.mark(key) is not None:
                raise RefusedError(Code.FAILED_PRECONDITION, "stale")
            self.fences[key] = (0, 0)
            return None
        return super().fence(call)


@broken("M007")
class FenceAfterNotFound(Provider):
    def steps(self):  # type: ignore[no-untyped-def]
        return [
            *(self.identify, self.validate, self.offered, self.find, self.fence),
            *(self.repeat, self.position, self.fits),
        ]


@broken("M008")
class DeleteNotFenced(Provider):
    def fence(self, call: Call) -> pb.TransitionAck | None:
        return None if call.kind == "delete" else super().fence(call)


@broken("M009")
class FenceAfterRepeat(Provider):
    def steps(self):  # type: ignore[no-untyped-def]
        return [
            *(self.identify, self.validate, self.offered, self.find, self.repeat),
            *(self.fence, self.position, self.fits),
        ]


@broken("M010")
class MarkMovesOnSuccess(Provider):
    def move_mark(self, key: Key, token: Mark) -> None:
        self.pending[key] = token

    @property
    def pending(self) -> dict[Key, Mark]:
        found: dict[Key, Mark] = self.__dict__.setdefault("_pending", {})
        return found

    async def mutate(
        self, kind: str, request: Request, identity: str | None = None
    ) -> pb.TransitionAck:
        try:
            answer = await super().mutate(kind, request, identity)
            for key, token in self.pending.items():
                super().move_mark(key, token)
        finally:
            self.pending.clear()
        return answer


@broken("M011")
class StaleTokenLowersTheMark(Provider):
    def stale(self, key: Key, token: Mark) -> None:
        self.move_mark(key, token)


@broken("M012")
class TokenOf32Bits(Provider):
    def validate(self, call: Call) -> pb.TransitionAck | None:
        if max(call.request.shard_epoch, call.request.sequence_number) >= 2**32:
            raise RefusedError(Code.INVALID_ARGUMENT, "too large")
        return super().validate(call)


@broken("M013")
class NegativeTokenFenced(Provider):
    def validate(self, call: Call) -> pb.TransitionAck | None:
        if min(call.request.shard_epoch, call.request.sequence_number) < 0:
            raise RefusedError(Code.FAILED_PRECONDITION, "stale")
        return super().validate(call)


@broken("M014")
class NegativeTokenPassesAnyMark(Provider):
    def newer(self, token: Mark, mark: Mark) -> bool:
        return min(token) < 0 or super().newer(token, mark)


@broken("M015")
class NegativeGraceIsUnknown(Provider):
    def validate(self, call: Call) -> pb.TransitionAck | None:
        request = call.request
        if isinstance(request, pb.DrainRequest) and request.grace_period_seconds < 0:
            raise RefusedError(Code.UNKNOWN, "an exception that the handler did not expect")
        return super().validate(call)


@broken("M140")
class NegativeTokenIsABadArgument(Provider):
    def validate(self, call: Call) -> pb.TransitionAck | None:
        if min(call.request.shard_epoch, call.request.sequence_number) < 0:
            raise RefusedError(Code.INVALID_ARGUMENT, "a number is negative")
        return super().validate(call)


@broken("M127")
class ZeroNumbersPass(Provider):
    def fence(self, call: Call) -> pb.TransitionAck | None:
        request = call.request
        if (request.shard_epoch, request.sequence_number) == (0, 0):
            return None
        return super().fence(call)


@broken("M128")
class NamelessShardPasses(Provider):
    def fence(self, call: Call) -> pb.TransitionAck | None:
        return super().fence(call) if call.request.shard_id else None
