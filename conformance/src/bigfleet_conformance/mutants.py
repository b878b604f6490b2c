"""The mutants: deliberately broken providers, and the behaviours each of them must fail.

The table is data of the suite, so that `explain` can say which mistakes a behaviour finds. The
providers themselves are test code; a test holds the two against each other, runs the suite on each
and is red when one survives.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bigfleet_conformance.registry import all_behaviours

# One line each: number, what is wrong in one place, what must fail at least.
_TABLE = """
M001 | mark kept per shard only | B302 B1204
M002 | equal token accepted | B212 B302 B303 B310 B312 B1201 B1204
M003 | higher epoch does not restart the sequence | B302 B303 B310 B312 B405 B1201 B1204
M004 | no fence | B212 B301-B303 B305-B307 B309-B312 B405 B1201 B1204
M005 | mark stays at the first token | B303 B310 B312 B1201 B1204
M006 | zero token fenced | B308
M007 | fence after not-found | B301
M008 | Delete not fenced | B301
M009 | fence after the repeat check | B301-B303 B305-B307 B312 B405 B1201 B1204
M010 | mark moves on success only | B301 B311
M011 | stale token lowers the mark | B312 B1201 B1204
M012 | token parts above 32 bits refused | B212
M013 | negative token is fenced | B211 B2039
M014 | negative token passes any mark | B2039
M015 | negative grace answers UNKNOWN | B210
M016 | new id on every repeat | B206 B214 B306 B307 B401-B403 B406 B408 B409
M017 | one constant id | B206 B214 B407
M018 | empty id | B206 B214 B306 B307 B401-B403 B406-B409
M019 | id not fresh in a new round | B214
M020 | Drain shares Create's id | B214 B307 B403
M021 | gap between position check and accept | B401-B403 B406 B409
M022 | repeat at the target starts again | B205
M023 | repeat shows the first snapshot | B205
M024 | repeated Configure rewrites the binding | B2005
M025 | repeat in flight starts the work twice | B2012
M026 | Drain accepted during CONFIGURING | B2012
M027 | out of position is FAILED_PRECONDITION | B201-B204 B311 B705 B1203
M028 | unknown machine is INTERNAL | B207 B215 B301 B1205
M029 | empty id is NOT_FOUND | B208 B1205
M030 | Delete with empty id is FAILED_PRECONDITION | B2010
M031 | filter of unknown states shows everything | B2025
M032 | Delete claimed, answers UNIMPLEMENTED | B109 B409 B807
M033 | Create legal from CONFIGURED | B201 B803
M034 | Delete legal from CONFIGURED | B204
M035 | Configure legal from SPECULATIVE | B202
M036 | Configure shows DRAINING in flight | B103 B105
M037 | Drain shows CONFIGURING in flight | B104 B105
M038 | Create passes through CONFIGURING | B105
M039 | no host at IDLE | B107 B803
M040 | settled machine flickers every 100 ms | B108 B1109
M041 | Delete keeps the host | B109 B803 B807
M042 | last_error left after success | B101
M043 | Drain keeps the metadata | B101 B403 B502 B807 B1202
M044 | Drain keeps the cluster | B101 B106 B210 B403 B404 B502 B803 B807 B1202
M045 | ack shows the old state | B408 B2004
M046 | ack without machine | B2004
M047 | mutation blocks until done | B2003
M048 | binding visible from CONFIGURED on only | B106 B504 B2001
M049 | binding cleared when draining starts | B2002
M050 | host set in CREATING, replaced at IDLE | B2006
M051 | host.ref changes at Configure | B2007
M052 | instance_type changes after Create | B2007
M053 | cancelled call leaves the machine between | B2013
M054 | one metadata map shared by all machines | B505
M055 | empty metadata values dropped | B501 B1202
M056 | metadata values trimmed | B501 B1202
M057 | values cut at NUL | B501
M058 | metadata above 256 KiB cut silently | B209 B503
M059 | large blob refused after the move | B213
M060 | old metadata merged into the next binding | B502 B1202
M061 | instance type leaked into labels | B801
M062 | price NaN | B802
M063 | SPOT with probability 0 | B802
M064 | quantity that does not parse | B804
M065 | host.provider changes | B805
M066 | zone lost at IDLE | B806
M067 | resources missing | B2008
M068 | max_results ignored | B902 B907
M069 | filter ignored | B901
M070 | only the first state of a filter used | B901
M071 | duplicates in List | B901
M072 | cursor inclusive | B904 B907-B909
M073 | junk cursor gives an empty list | B906 B909
M074 | change does not touch the record's revision | B903 B905 B907
M075 | reading moves the revision | B904 B908 B909
M076 | constant revision | B903 B905 B2009
M077 | continuation jumps to the head | B2019
M078 | delta carries unchanged machines | B904 B908 B1102
M079 | caps above 256 ignored | B1103
M080 | FAILED can be configured | B705
M081 | FAILED hidden from List | B707
M082 | no transition timeout | B703 B704 B708
M083 | late success applied | B704
M084 | readiness not asked | B708 B2018
M085 | registered counts as Ready | B2018
M086 | substrate error reverts the state | B701 B702 B707
M087 | empty last_error | B701-B708 B2028 B2029
M088 | failed Drain starts over forever | B706 B2029
M089 | lost host never noticed | B2014
M090 | healed slot keeps host and last_error | B2015
M091 | healing forgets the marks | B2015
M092 | marks not stored | B1001
M093 | marks of a shard merged on load | B1001
M094 | operation ids not stored | B1002
M095 | metadata not stored | B1003
M096 | id counter not stored | B1005
M097 | work in flight left as it was | B1006 B2027
M098 | seeds again on every boot | B1001-B1006
M099 | unknown shard refused after a restart | B1007
M100 | state written 5 s after the ack | B1001-B1004
M101 | no lock on the state | B2016
M102 | damaged state starts empty | B2017
M103 | changes before a restart lost to deltas | B2023
M104 | no zone beyond the 1,000th machine | B1101
M105 | every 16th Drain leaves metadata | B1104
M106 | every 10th Delete drops the record | B1105
M107 | 5 % of Gets take 300 ms | B1106
M108 | List takes 4 s | B1107
M109 | more than 8 Creates at once refused | B1108
M110 | List ends at 65,536 machines | B2020
M111 | fence keeps every token | B2021
M112 | fence drops the oldest marks of real machines | B2021
M113 | client certificate not required | B2011
M114 | SAN not compared with shard_id | B2011
M115 | refused identity still moves the mark | B2011
M116 | certificates read once | B2024
M117 | no health service | B2026
M118 | failed drain ends IDLE | B2029
M119 | stock-out without its class word | B2028
M120 | hosts not stored | B2030
M121 | mark stored only with work that begins | B2031
M122 | failure clears the binding | B2032
M123 | cap before the filter | B2033
M124 | filter ignored in a delta | B2033
M125 | negative cap cuts the end off | B2034
M126 | Delete's id not fresh in a new life | B2035
M127 | (0,0) of a named shard not fenced | B2036
M128 | shard without a name not fenced | B2036
M129 | FAILED can be created again | B2037
M130 | FAILED can be drained | B2037
M131 | FAILED can be deleted | B2037
M132 | slot of a lost host can be deleted | B2037
M133 | failed Drain is answered as a repeat | B2037
M134 | refused mutation rewrites the reason of a failure | B705 B2037
M135 | restart rewrites the reason of a failure | B2038
M136 | host of a FAILED machine not stored | B2038
M137 | binding of a FAILED machine not stored | B2038
M138 | restart frees FAILED slots | B2038
M139 | first look after a restart fails FAILED machines again | B2038
M140 | negative part of a token is INVALID_ARGUMENT | B2039
"""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A provider that is wrong in one place."""

    id: str
    wrong: str
    must_fail: tuple[str, ...]


def _expand(text: str) -> tuple[str, ...]:
    """B301-B303 means those of the registry from B301 to B303."""
    known = {behaviour.number: behaviour.id for behaviour in all_behaviours().values()}
    found: list[str] = []
    for word in text.split():
        first, _, last = word.partition("-")
        start, end = int(first[1:]), int((last or first)[1:])
        found += [id for number, id in known.items() if start <= number <= end]
    return tuple(found)


def all_mutants() -> Mapping[str, Mutant]:
    """Every mutant by its number."""
    found: dict[str, Mutant] = {}
    for line in _TABLE.strip().splitlines():
        id, wrong, must_fail = (part.strip() for part in line.split(" | "))
        if not re.fullmatch(r"M\d{3}", id):
            raise ValueError(f"{id!r} is not the number of a mutant")
        found[id] = Mutant(id, wrong, _expand(must_fail))
    return found


def killers() -> Mapping[str, tuple[Mutant, ...]]:
    """For every behaviour the mutants it must kill."""
    found: dict[str, list[Mutant]] = {id: [] for id in all_behaviours()}
    for mutant in all_mutants().values():
        for id in mutant.must_fail:
            found[id].append(mutant)
    return {id: tuple(mutants) for id, mutants in found.items()}
