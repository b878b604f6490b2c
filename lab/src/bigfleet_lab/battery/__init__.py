"""Tests that every provider of a cloud takes: what must hold whatever the cloud's API does.

    Subject, through_a_life, lost_answers    one provider in this process, and its cloud
    storm, rough_weather                     many Creates at once; throttling and stock-outs
    whole_lives, created_and_deleted         many lives at the limits that a cloud really has
    start_report                             time to ready and memory with many slots
    survives_kill, survives_every_kill       the provider as a process, killed at one API call, or
                                             once at each call of a life
    FastClock                                time that passes faster, for storms at a declared rate

A provider's tests make a `Subject` of their fake cloud and say what its calls are called; the
assertions are here. Like the rest of this distribution it is for tests only.
"""

from bigfleet_lab.battery.kills import Boot, KillSubject, survives_every_kill, survives_kill
from bigfleet_lab.battery.lives import (
    LivesReport,
    created_and_deleted,
    limit_as_declared,
    whole_lives,
)
from bigfleet_lab.battery.pace import FastClock
from bigfleet_lab.battery.starts import StartReport, start_report
from bigfleet_lab.battery.storms import StormReport, rough_weather, storm
from bigfleet_lab.battery.subject import Subject, lost_answers, through_a_life

__all__ = [
    "Boot",
    "FastClock",
    "KillSubject",
    "LivesReport",
    "StartReport",
    "StormReport",
    "Subject",
    "created_and_deleted",
    "limit_as_declared",
    "lost_answers",
    "rough_weather",
    "start_report",
    "storm",
    "survives_every_kill",
    "survives_kill",
    "through_a_life",
    "whole_lives",
]
