"""The shard: the decision cycle and everything around it, in one process on one event loop.

Its rooms, from the highest to the lowest. A room imports rooms below it only; rooms on one line do
not import each other. import-linter keeps this (pyproject.toml).

    server                            settings, the parts put together, the process, admin, reading
      decide  |  peers                the cycle          |  the coordinator's instructions, moves
        act  |  explain               actions on machines |  why needs are met or not
          providers | operators | demand     Lists  |  sessions  |  roll-ups and the needs table
            machines                  the Book: the machines, and who hears of a change
              state                   the files of the data directory
                ports, errors         what a shard needs from outside, and errors of all of it

It needs no coordinator to start, to be ready or to decide, and never imports one: they meet on
the wire. The words are defined in docs/internals/glossary.md.
"""
