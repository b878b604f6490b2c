"""What a command changes, or why it is refused.

`apply` looks at the tables and touches nothing. Every refusal says what was wrong and what to do.
A command that asks for what already is changes nothing and is not refused. Names are checked where
something is stored under them; what an older release stored can still be removed. Writes that
concern what shards are assigned carry a higher revision of assignments with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch

from bigfleet.coordinator.state import commands as c
from bigfleet.coordinator.state.changes import REVISION, SINCE, Changes, Deletion, Put
from bigfleet.coordinator.state.errors import (
    AlreadyAssignedError,
    InvalidCommandError,
    UnknownEntryError,
)
from bigfleet.coordinator.state.moves import forget, plan, step
from bigfleet.coordinator.state.tables import FleetState
from bigfleet.coordinator.state.values import (
    LONGEST_NAME,
    ClusterBinding,
    Domain,
    ShardEntry,
    is_short,
)
from bigfleet_base.identifiers import (
    IdentifierError,
    check_id,
    check_label_key,
    check_label_value,
    check_text,
    is_id,
    shortened,
)

INT64_MAX = 2**63 - 1


def apply(state: FleetState, command: c.Command, now: int) -> Changes:
    """What a command changes at this moment; RefusalError where a rule says no."""
    return _apply(command, state, now)


@singledispatch
def _apply(command: object, state: FleetState, now: int) -> Changes:
    raise TypeError(f"{type(command).__name__} is not a command")


# -- shards --------------------------------------------------------------------------------------


@_apply.register
def _add_shard(command: c.AddShard, state: FleetState, now: int) -> Changes:
    shard_id = _required("shard_id", command.shard_id)
    known = state.shards.get(shard_id)
    if known is None:
        _checked(check_id, "shard_id", shard_id)
        put = Put("shards", shard_id, ShardEntry(command.address, now, now))
        if state.shards:
            return Changes((put,))
        # The first shard gets what is in no domain, which every later one must be told.
        return _assigning(state, now, Changes((put,)))
    if not command.address or command.address == known.address:
        return Changes()
    return Changes((Put("shards", shard_id, ShardEntry(command.address, now, known.since)),))


@_apply.register
def _forget_address(command: c.ForgetAddress, state: FleetState, now: int) -> Changes:
    known = state.shards[_known_shard(state, command.shard_id)]
    if not known.address:
        return Changes()
    return Changes((Put("shards", command.shard_id, ShardEntry("", now, known.since)),))


@_apply.register
def _remove_shard(command: c.RemoveShard, state: FleetState, now: int) -> Changes:
    shard_id = _known_shard(state, command.shard_id)
    deletions = [Deletion("shards", shard_id)]
    deletions += [Deletion("clusters", cluster) for cluster in sorted(state.clusters_of(shard_id))]
    deletions += _without_domains(state, sorted(state.domains_of(shard_id)))
    # An allocation that is left without a shard stays: a limit does not vanish by itself.
    puts = tuple(
        Put("quotas", pool, {shard: slots for shard, slots in slices.items() if shard != shard_id})
        for pool, slices in state.quotas.items()
        if shard_id in slices
    )
    return _assigning(state, now, Changes(puts, tuple(deletions)))


# -- clusters ------------------------------------------------------------------------------------


@_apply.register
def _contact(command: c.ContactClusters, state: FleetState, now: int) -> Changes:
    shard_id = _known_shard(state, command.shard_id)
    named = (one for one in dict.fromkeys(command.cluster_ids) if is_id(one))
    new = [one for one in named if one not in state.clusters]
    puts = tuple(Put("clusters", cluster, ClusterBinding(shard_id, now)) for cluster in new)
    return _assigning(state, now, Changes(puts)) if puts else Changes()


@_apply.register
def _bind_cluster(command: c.BindCluster, state: FleetState, now: int) -> Changes:
    cluster = _required("cluster_id", command.cluster_id)
    if cluster not in state.clusters:
        _checked(check_id, "cluster_id", cluster)
    shard_id = _known_shard(state, command.shard_id)
    known = state.clusters.get(cluster)
    if known is not None and known.shard == shard_id:
        return Changes()
    return _assigning(
        state, now, Changes((Put("clusters", cluster, ClusterBinding(shard_id, now)),))
    )


# -- domains -------------------------------------------------------------------------------------


@_apply.register
def _assign_domain(command: c.AssignDomain, state: FleetState, now: int) -> Changes:
    domain = (
        _required("topology_key", command.topology_key),
        _required("topology_value", command.topology_value),
    )
    if domain not in state.domains:
        _checked(check_label_key, "topology_key", domain[0])
        _checked(check_label_value, "topology_value", domain[1])
    shard_id = _known_shard(state, command.shard_id)
    owner = state.domains.get(domain)
    if owner == shard_id:
        return Changes()
    if owner is not None:
        raise AlreadyAssignedError(
            f"domain {domain[0]}={domain[1]} belongs to shard {owner!r}: unassign it first"
        )
    return _assigning(
        state, now, Changes((Put("domains", domain, shard_id), *_first_by(state, domain[0], now)))
    )


@_apply.register
def _unassign_domain(command: c.UnassignDomain, state: FleetState, now: int) -> Changes:
    domain = (
        _required("topology_key", command.topology_key),
        _required("topology_value", command.topology_value),
    )
    if domain not in state.domains:
        return Changes()
    return _assigning(state, now, Changes(deletions=tuple(_without_domains(state, [domain]))))


def _first_by(state: FleetState, key: str, now: int) -> tuple[Put, ...]:
    """Since when domains are assigned by a label key, where this is the first one."""
    if state.domains_by(key):
        return ()
    since = max(now, 1 + max(state.key_since.values(), default=0))
    return (Put("meta", f"{SINCE}{key}", since),)


def _without_domains(state: FleetState, domains: Sequence[Domain]) -> list[Deletion]:
    """They go, and with the last one of a label key, how long it was in use."""
    per_key = Counter(key for key, _ in domains)
    return [Deletion("domains", domain) for domain in domains] + [
        Deletion("meta", f"{SINCE}{key}")
        for key, count in sorted(per_key.items())
        if count == state.domains_by(key) and key in state.key_since
    ]


# -- quotas and providers ------------------------------------------------------------------------


@_apply.register
def _set_quota(command: c.SetQuota, state: FleetState, now: int) -> Changes:
    pool = (_required("provider", command.provider), _short("region", command.region))
    slices = dict(sorted(command.per_shard.items()))
    if pool not in state.quotas:
        _checked(check_id, "provider", pool[0])
        _checked(check_text, "region", pool[1])
    name = "/".join(filter(None, pool))
    for shard_id, slots in slices.items():
        if slots < 0:
            raise InvalidCommandError(
                f"quota of {name}: {slots} for shard {shortened(shard_id)} is below 0"
            )
    total = sum(slices.values())
    if slices and command.announced is not None and total > command.announced:
        raise InvalidCommandError(
            f"quota of {name}: {total} slots are given out and {command.announced} are announced; "
            "give less, or raise what the provider offers"
        )
    for shard_id in slices:
        _known_shard(state, shard_id)
    if state.quotas.get(pool) == slices or (not slices and pool not in state.quotas):
        return Changes()
    if not slices:
        return _assigning(state, now, Changes(deletions=(Deletion("quotas", pool),)))
    return _assigning(state, now, Changes((Put("quotas", pool, slices),)))


@_apply.register
def _register_provider(command: c.RegisterProvider, state: FleetState, now: int) -> Changes:
    provider = command.provider
    _required("name", provider.name)
    _required("address", provider.address)
    if provider.name not in state.providers:
        _checked(check_id, "name", provider.name)
    _checked(check_text, "region", provider.region)
    if state.providers.get(provider.name) == provider:
        return Changes()
    return _assigning(state, now, Changes((Put("providers", provider.name, provider),)))


@_apply.register
def _remove_provider(command: c.RemoveProvider, state: FleetState, now: int) -> Changes:
    name = _required("name", command.name)
    if name not in state.providers:
        raise UnknownEntryError(
            f"no provider {shortened(name)} is registered{_known(state.providers)}"
        )
    return _assigning(state, now, Changes(deletions=(Deletion("providers", name),)))


# -- moves ---------------------------------------------------------------------------------------


@_apply.register
def _plan_moves(command: c.PlanMoves, state: FleetState, now: int) -> Changes:
    return plan(command, state, now)


@_apply.register
def _step_move(command: c.StepMove, state: FleetState, now: int) -> Changes:
    changes = step(command, state, now)
    shifted = any(put.table == "quotas" for put in changes.puts)
    return _assigning(state, now, changes) if shifted else changes


@_apply.register
def _forget_moves(command: c.ForgetMoves, state: FleetState, now: int) -> Changes:
    return forget(command, state)


# -- what they have in common --------------------------------------------------------------------


def _assigning(state: FleetState, now: int, changes: Changes) -> Changes:
    """With a higher revision of assignments.

    Taken from the clock where it can be, so that a state that was restored to an earlier one and
    went another way never gives an old number to something new.
    """
    revision = min(max(state.revision + 1, now), INT64_MAX)
    return Changes((*changes.puts, Put("meta", REVISION, revision)), changes.deletions)


def _required(field: str, value: str) -> str:
    if not value:
        raise InvalidCommandError(f"{field} is empty: it is required")
    return _short(field, value)


def _checked(check: Callable[[str, str], str], field: str, value: str) -> None:
    """Refuse a name that something would be stored under."""
    try:
        check(value, field)
    except IdentifierError as error:
        raise InvalidCommandError(str(error)) from None


def _short(field: str, value: str) -> str:
    if not is_short(value):
        raise InvalidCommandError(
            f"{field} {shortened(value)} is too long: at most {LONGEST_NAME} bytes, percent-encoded"
        )
    return value


def _known_shard(state: FleetState, shard_id: str) -> str:
    _required("shard_id", shard_id)
    if shard_id not in state.shards:
        raise UnknownEntryError(
            f"no shard {shortened(shard_id)} is registered{_known(state.shards)}"
        )
    return shard_id


def _known(table: Mapping[str, object]) -> str:
    """A few names that would have done."""
    names = sorted(table)[:5]
    return f": there is {', '.join(names)}" + (", ..." if len(table) > 5 else "") if names else ""
