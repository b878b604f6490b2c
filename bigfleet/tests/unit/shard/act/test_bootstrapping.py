"""Bootstrap: a blob from the operator, Configure at the provider, and every way it can fail."""

import grpc
import pytest

from bigfleet.decision import ActionKind
from bigfleet.model import MachineState
from bigfleet.provider import CallError
from bigfleet.shard.act.backoff import BootstrapEnded, BootstrapFailed
from bigfleet.shard.operators.errors import BlobError
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from executing import World, passes, run, until
from executing_values import PROFILE, idle, machine, order

K = ActionKind
S = MachineState


def test_a_machine_joins_its_cluster_with_its_blob_and_its_stamp() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            assert world.hand_over(order(K.BOOTSTRAP, "m")).accepted
            assert world.state("m") is S.CONFIGURING
            await world.settled()
            assert world.state("m") is S.CONFIGURED
            (request,) = world.cloud.requests
            assert isinstance(request, pb.ConfigureRequest)
            assert request.bootstrap_blob == b"join c-1 1"
            assert request.shard_metadata["bigfleet.lucy.sh/assigned-priority"] == "100"
            key = "bigfleet.lucy.sh/assigned-need-fingerprint"
            assert request.shard_metadata[key] == PROFILE.fingerprint
            assert world.outcomes() == {("Bootstrap", "success"): 1}
            assert world.woken
            assert not world.book.busy("m")

    run(main)


def test_the_phases_of_a_binding_are_timed() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.operators.latency, world.cloud.latency = 2.0, 1.0
            world.cloud.finishes = False
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await until(lambda: "configure" in world.metrics.seconds)
            await passes(9.5)
            world.cloud.finish("m")
            world.observe("m")
            assert world.metrics.seconds["bootstrap"] == [pytest.approx(2.0)]
            assert world.metrics.seconds["configure"] == [pytest.approx(3.0)]
            assert world.metrics.seconds["join"] == [pytest.approx(9.5, abs=0.1)]

    run(main)


@pytest.mark.parametrize("trouble", ["no session", "error", "silence"])
def test_without_a_blob_the_machine_is_idle_again_and_the_cluster_backs_off(trouble: str) -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            if trouble == "no session":
                world.operators.connected.clear()
            elif trouble == "error":
                world.operators.error = BlobError("no template for this shape")
            else:
                world.operators.latency = 100.0
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            found = world.known("m")
            assert (found.state, found.cluster, found.stamp) == (S.IDLE, "", None)
            words = {"no session": "no_session", "error": "blob_error", "silence": "ctx_canceled"}
            assert world.outcomes() == {("Bootstrap", words[trouble]): 1}
            (event,) = world.executor.failures.take_events()
            assert isinstance(event, BootstrapFailed)
            assert not world.cloud.calls
            # The machine is not to blame: another cluster may have it at once.
            assert not world.executor.failures.waiting()

    run(main)


def test_a_blob_that_came_after_a_failure_ends_the_back_off() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"), machine("n"))
            world.operators.error = BlobError("not yet")
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            world.operators.error = None
            world.hand_over(order(K.BOOTSTRAP, "n"))
            await world.settled()
            kinds = [type(event) for event in world.executor.failures.take_events()]
            assert kinds == [BootstrapFailed, BootstrapEnded]

    run(main)


def test_the_reason_of_a_blob_error_is_written_down() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.operators.error = BlobError("no template for this shape")
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            (decision,), _ = world.executor.decisions.since(0)
            assert decision.reason == "because: no template for this shape"

    run(main)


def test_a_blob_past_its_life_is_never_sent_and_a_fresh_one_is_asked_for() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.operators.lives = [0.0, 60.0]
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            (request,) = world.cloud.requests
            assert isinstance(request, pb.ConfigureRequest)
            assert request.bootstrap_blob == b"join c-1 2"

    run(main)


def test_blobs_that_are_always_past_their_life_are_an_error_not_a_loop() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.operators.lives = [0.0] * 100
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            assert world.outcomes() == {("Bootstrap", "blob_error"): 1}
            assert not world.cloud.calls

    run(main)


def test_an_action_has_thirty_seconds_for_everything() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.operators.latency, world.cloud.latency = 20.0, 20.0
            world.hand_over(order(K.BOOTSTRAP, "m"))
            begin = world.clock.monotonic()
            await world.settled()
            assert world.clock.monotonic() - begin == pytest.approx(30.0, abs=0.1)
            assert world.outcomes() == {("Bootstrap", "ctx_canceled"): 1}
            assert world.state("m") is S.IDLE

    run(main)


def test_an_ack_that_names_another_cluster_is_a_lost_race() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))

            def stolen(method: str, shown: pb.Machine) -> None:
                shown.cluster = "c-2"

            world.cloud.change = stolen
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            assert world.outcomes() == {("Bootstrap", "stale_state"): 1}
            found = world.known("m")
            assert (found.state, found.cluster) == (S.CONFIGURED, "c-2")
            assert found.stamp is None or found.stamp.cluster == "c-2"

    run(main)


def test_an_ack_that_shows_an_idle_machine_is_told_apart() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))

            def raced(method: str, shown: pb.Machine) -> None:
                shown.state = pb.MACHINE_STATE_IDLE
                shown.ClearField("cluster")

            world.cloud.change = raced
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            assert world.outcomes() == {("Bootstrap", "transition_raced_to_idle"): 1}
            assert world.state("m") is S.IDLE

    run(main)


def test_a_refused_configure_leaves_the_machine_idle_and_asks_for_the_truth() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.cloud.refuse["Configure"] = CallError(grpc.StatusCode.INTERNAL, "wrong state")
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            assert world.outcomes() == {("Bootstrap", "provider_error"): 1}
            assert world.state("m") is S.IDLE
            assert world.refreshed == ["m"]
            assert world.executor.failures.waiting() == {"m"}

    run(main)


def test_an_unanswered_configure_that_was_done_is_found_out() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.cloud.finishes = False
            lost = CallError(grpc.StatusCode.UNAVAILABLE, "connection reset")
            world.cloud.swallow["Configure"] = lost
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            assert world.outcomes() == {("Bootstrap", "provider_error"): 1}
            found = world.known("m")
            assert (found.state, found.cluster) == (S.CONFIGURING, "c-1")
            assert found.stamp is not None
            assert not world.executor.failures.waiting()

    run(main)


def test_an_unanswered_configure_that_was_not_done_leaves_the_machine_idle() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.cloud.refuse["Configure"] = CallError(grpc.StatusCode.UNAVAILABLE, "down")
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            assert world.cloud.calls == [("Configure", "m"), ("Get", "m")]
            assert world.state("m") is S.IDLE
            assert not world.refreshed

    run(main)


def test_an_order_without_a_need_ends_as_missing_profile() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.hand_over(order(K.BOOTSTRAP, "m", profile=None))
            await world.settled()
            assert world.outcomes() == {("Bootstrap", "missing_profile"): 1}
            assert world.state("m") is S.IDLE

    run(main)


def test_a_record_that_must_not_be_taken_is_counted_and_looked_at_again() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))

            def priceless(method: str, shown: pb.Machine) -> None:
                shown.price_per_hour = -1.0

            world.cloud.change = priceless
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            assert world.outcomes() == {("Bootstrap", "transition_error"): 1}
            assert world.metrics.counts["rejected price"] == 1
            assert world.refreshed == ["m"]

    run(main)


def test_hundreds_are_bound_in_one_go() -> None:
    async def main() -> None:
        async with World() as world:
            machines = idle(500)
            world.add(*machines)
            world.hand_over(*(order(K.BOOTSTRAP, each.id) for each in machines))
            await world.settled()
            assert world.outcomes() == {("Bootstrap", "success"): 500}

    run(main)
