"""The inside of hosts: a folder, a shell, and the ways in which a provider reaches both.

    Guests        all guests of a cloud: boot, halt, forget; scripts as operations; the levers
    GuestFolder   one guest: its files, its first boot, a script in a real /bin/sh
    user_data     what a first boot takes from user data, in both of its forms
    Levers        how hooks end: Ready after a time, an exit code, never
    SshServer     SSH on an address of its own for every guest, with the injected host key
    AgentLoop     the agent of one guest, which polls the provider

A guest is a folder. Absolute paths below /run, /opt, /etc, /var/lib and /usr/local that a script
names are those of the folder; everything else is this machine's. The hook at /opt/bigfleet is a
stub that obeys the levers, because no cluster is there to join. A guest costs nothing until it is
used: a host that boots leaves its user data, and the folder is made with the first use.
"""

from bigfleet_fakecloud.guests.folder import GuestFolder, Outcome
from bigfleet_fakecloud.guests.guests import Guests
from bigfleet_fakecloud.guests.levers import Levers

__all__ = ["GuestFolder", "Guests", "Levers", "Outcome"]
