"""Pools, buckets, tokens, rules and operations, each by itself."""

import random

import pytest

from bigfleet_fakecloud import (
    Conflict,
    Effect,
    Moment,
    OutOfStock,
    Rule,
    ScriptError,
    Throttled,
    TokenReused,
    VirtualClock,
)
from bigfleet_fakecloud.behaviour.delays import Delays
from bigfleet_fakecloud.behaviour.faults import Faults
from bigfleet_fakecloud.behaviour.limits import Pool, Throttle
from bigfleet_fakecloud.state.operations import Operations
from bigfleet_fakecloud.state.timeline import Timeline
from bigfleet_fakecloud.state.tokens import Tokens

KEY = ("small", "a")


def rules(seed: int = 1) -> Faults:
    return Faults(random.Random(seed))


def test_a_pool_refuses_above_its_limit_and_takes_again_after_a_release() -> None:
    pool = Pool(OutOfStock)
    pool.limit(KEY, 1)
    pool.hold("h-1", KEY)
    with pytest.raises(OutOfStock, match="small/a: 1 of 1 in use"):
        pool.hold("h-2", KEY)
    pool.release("h-1")
    pool.release("h-1")
    pool.hold("h-2", KEY)
    assert pool.held(KEY) == 1


def test_a_lifted_limit_is_endless() -> None:
    pool = Pool(OutOfStock)
    pool.limit(KEY, 0)
    pool.limit(KEY, None)
    pool.hold("h-1", KEY, 1000)
    assert pool.limits == {}


def test_a_limit_below_zero_is_refused() -> None:
    with pytest.raises(ScriptError, match="from 0 on"):
        Pool(OutOfStock).limit(KEY, -1)


def test_a_throttled_call_is_told_when_to_come_again() -> None:
    throttle = Throttle()
    throttle.limit("*", rate=0.5, burst=1)
    throttle.take("Get", 0.0)
    with pytest.raises(Throttled) as refused:
        throttle.take("Get", 0.5)
    assert refused.value.retry_after == 2.0
    throttle.take("List", 2.5)


def test_a_refusal_by_one_bucket_costs_nothing_in_the_other() -> None:
    throttle = Throttle()
    throttle.limit("*", rate=1, burst=1)
    throttle.limit("Get", rate=0.001, burst=2)
    throttle.take("Get", 0.0)
    with pytest.raises(Throttled):
        throttle.take("Get", 0.1)
    throttle.take("Get", 1.0)


def test_a_bucket_without_a_rate_is_refused() -> None:
    with pytest.raises(ScriptError, match="rate above 0"):
        Throttle().limit("*", rate=0)


def test_a_token_gives_the_first_object_until_it_expires() -> None:
    clock = VirtualClock()
    tokens = Tokens(Timeline(clock), expires=10)
    names = iter(["a", "b", "c", "d"])
    assert tokens.once("Create", "t", "x", lambda: next(names)) == "a"
    assert tokens.once("Create", "t", "x", lambda: next(names)) == "a"
    assert tokens.once("Delete", "t", "x", lambda: next(names)) == "b"
    assert tokens.once("Create", None, "x", lambda: next(names)) == "c"
    with pytest.raises(TokenReused, match="'t'"):
        tokens.once("Create", "t", "y", lambda: next(names))
    clock.advance(10)
    assert tokens.once("Create", "t", "y", lambda: next(names)) == "d"


def test_a_token_of_a_refused_attempt_is_free() -> None:
    tokens = Tokens(Timeline(VirtualClock()), expires=10)

    def refuse() -> str:
        raise OutOfStock("none left")

    with pytest.raises(OutOfStock):
        tokens.once("Create", "t", "x", refuse)
    assert tokens.once("Create", "t", "x", lambda: "a") == "a"


def test_a_rule_lets_some_calls_pass_and_then_applies_so_often() -> None:
    faults = rules()
    number = faults.add(Rule(op="Get*", skip=1, times=2))
    found = [faults.pick("GetHost", Moment.BEFORE) is not None for _ in range(5)]
    assert found == [False, True, True, False, False]
    assert faults.pick("List", Moment.BEFORE) is None
    assert faults.fired(number) == 2


def test_a_rule_applies_at_its_moment_only_and_can_be_taken_back() -> None:
    faults = rules()
    number = faults.add(Rule(moment=Moment.AFTER, effect=Effect.DROP, times=None))
    assert faults.pick("Get", Moment.BEFORE) is None
    assert faults.pick("Get", Moment.AFTER) is not None
    faults.remove(number)
    assert faults.pick("Get", Moment.AFTER) is None


def test_chance_follows_from_the_seed() -> None:
    def drawn(seed: int) -> list[bool]:
        faults = rules(seed)
        faults.add(Rule(chance=0.5, times=None))
        return [faults.pick("Get", Moment.BEFORE) is not None for _ in range(64)]

    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)
    assert 10 < sum(drawn(7)) < 54


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"opp": "Get"}, "no opp"),
        ({"moment": "later"}, "later"),
        ({"effect": "explode"}, "explode"),
        ({"moment": "operation", "effect": "drop"}, "only fail"),
        ({"chance": 2}, "from 0 to 1"),
        ({"status": 20}, "100 to 599"),
        ({"times": "twice"}, "number"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(values: dict[str, object], reason: str) -> None:
    with pytest.raises(ScriptError, match=reason):
        Rule.parse(values)


class Work:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.faults = rules()
        timeline = Timeline(self.clock)
        self.operations = Operations(timeline, Delays(), random.Random(1), self.faults)
        self.done: list[str] = []


def test_an_operation_shows_its_progress_and_has_its_effect_at_the_end() -> None:
    work = Work()
    ref = work.operations.begin("Grow", "h-1", 4.0, lambda: work.done.append("grown")).ref
    work.clock.advance(1)
    assert work.operations.get(ref).progress == 0.25
    assert work.done == []
    work.clock.advance(3)
    ended = work.operations.get(ref)
    assert ended.done
    assert ended.error is None
    assert work.done == ["grown"]


def test_an_ordered_failure_of_an_operation_shows_only_at_its_end() -> None:
    work = Work()
    work.faults.add(Rule(op="Grow", moment=Moment.OPERATION, code="no_space"))
    begun = work.operations.begin("Grow", "h-1", 4.0, lambda: work.done.append("grown"))
    assert begun.error is None
    work.clock.advance(4)
    ended = work.operations.get(begun.ref)
    assert ended.done
    assert ended.error is not None
    assert ended.error.code == "no_space"
    assert work.done == []


def test_an_effect_that_is_refused_is_how_the_operation_ends() -> None:
    work = Work()

    def refuse() -> None:
        raise Conflict("the host is gone")

    ref = work.operations.begin("Grow", "h-1", 1.0, refuse).ref
    work.clock.advance(1)
    error = work.operations.get(ref).error
    assert error is not None
    assert error.text == "the host is gone"


def test_time_does_not_go_back() -> None:
    with pytest.raises(ScriptError, match="cannot go back"):
        VirtualClock().advance(-1)
