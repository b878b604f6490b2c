"""Metadata: stored and echoed byte for byte, and gone with the binding (B5xx)."""

from collections.abc import Mapping

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.behaviours.transitions import whole_or_not_at_all
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.calls import Binding, Code
from bigfleet_conformance.harness.oracles import CONFIGURED, CONFIGURING
from bigfleet_conformance.harness.probe import Probe, is_clean
from bigfleet_conformance.registry import Area, Chapter

row = Chapter(Area.METADATA, section="3.3").row


def hostile_map() -> dict[str, str]:
    """55 keys with everything that careless code trims, cuts or drops."""
    found = {
        "nul": "a\0b",
        "only-nul": "\0",
        "empty": "",
        "k\0ey": "a NUL inside the key",
        "spaces": "  both ends \t\n",
        "cjk-漢字": "東京都の機械",
        "emoji-🚀": "👩‍🚀🛰️",
        "combining": "e\u0301 is not \u00e9",
        "quotes": "\"'`\\",
        "json": '{"a": null}',
        "slash/and.dots/": "../..",
    }
    for code in range(0x01, 0x20):
        found[f"c0-{code:02x}"] = f"[{chr(code)}]"
    for code in range(0x80, 0x8D):
        found[f"c1-{code:02x}"] = f"[{chr(code)}]"
    return found


def same(machine: pb.Machine, wanted: Mapping[str, str], where: str) -> None:
    """The metadata of a record equals a map, byte for byte."""
    got = dict(machine.shard_metadata)
    if got == dict(wanted):
        return
    missing = sorted(wanted.keys() - got.keys())[:3]
    foreign = sorted(got.keys() - wanted.keys())[:3]
    changed = sorted(k for k in wanted.keys() & got.keys() if wanted[k] != got[k])[:3]
    check(False, f"{where}: metadata lacks {missing}, has {foreign} in excess, changed {changed}")


@row("B501")
async def byte_for_byte(p: Probe) -> None:
    """Metadata comes back byte for byte.

    Why: what a machine remembers of its need lives in there, and only there.
    Does: 55 keys: NUL, C0 and C1 controls, CJK, emoji, empty values, a NUL inside a key.
    Passes: byte-equal on four Gets and on List(CONFIGURED).
    """
    wanted = hostile_map()
    walker = await p.bound(Binding(metadata=wanted))
    for _ in range(4):
        same(await walker.see(), wanted, "Get")
    listed = [m for m in (await p.list([CONFIGURED])).machines if m.id == walker.id]
    check(len(listed) == 1, f"List(CONFIGURED) has the machine {len(listed)} times")
    same(listed[0], wanted, "List")


@row("B502")
async def no_leftovers(p: Probe) -> None:
    """The next binding has nothing of the last.

    Why: a leftover key is read as a promise to another cluster.
    Does: bind, Drain, bind with other keys.
    Passes: both cleared at IDLE; afterwards only the new keys and the new cluster.
    """
    walker = await p.bound(p.binding("first-cluster", old="1", both="old"))
    await walker.drain()
    is_clean(await walker.see())
    second = p.binding("second-cluster", new="2", both="new")
    await walker.configure(second)
    now = await walker.see()
    check(now.cluster == second.cluster, f"bound to {now.cluster!r}")
    same(now, second.metadata, "second binding")


@row("B503")
async def two_mebibytes(p: Probe) -> None:
    """2 MiB of metadata is stored whole or refused whole.

    Why: a provider may have a limit, but it has to say so.
    Does: 256 keys of 8 KiB.
    Passes: verbatim, or INVALID_ARGUMENT without effect.
    """
    binding = Binding(metadata={f"k{n:03}": chr(97 + n % 26) * 8192 for n in range(256)})
    await whole_or_not_at_all(p, binding, (Code.INVALID_ARGUMENT,))


@row("B504", also_slow=True)
async def there_from_the_start(p: Probe) -> None:
    """Metadata is there from CONFIGURING on.

    Why: a shard that restarts during a join must find what it stamped.
    Does: polling during Configure.
    Passes: if CONFIGURING is seen the metadata is already verbatim; verbatim at CONFIGURED.
    """
    walker = await p.idle()
    binding = p.binding("", stamp="1", empty="")
    async with p.watch(walker.id) as trace:
        await walker.configure(binding)
    for sample in trace.in_state(CONFIGURING):
        same(sample, binding.metadata, "CONFIGURING")
    if p.slow:
        trace.must_have_seen(CONFIGURING)
    same(await walker.see(), binding.metadata, "CONFIGURED")


@row("B505", slots=2)
async def stored_as_sent(p: Probe) -> None:
    """What was stored does not change with what is sent later.

    Why: a map that is shared shows one machine's stamp on another.
    Does: the caller's map is changed after the ack and used to bind a second machine.
    Passes: the first machine's stored map is as it was sent.
    """
    first, second = await p.idle(), await p.idle()
    sent = {"owner": "first", "only-first": "1"}
    await first.configure(Binding("first-cluster", dict(sent)))
    changed = {"owner": "second", "only-second": "2"}
    await second.configure(Binding("second-cluster", changed))
    same(await first.see(), sent, "first machine")
    same(await second.see(), changed, "second machine")
