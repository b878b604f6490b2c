"""House rules on names, rooms and words, run by `tools/checks.py`.

    phrases    wording that the pages and the code do not use
    names      a public class name once per distribution; modules and classes named by nouns
    references names of modules in heads, docstrings and comments that do not exist
    rooms      at most eight modules beside the rooms of a package; heads that name every room
    sizes      how large the control plane and the repository may become
    findings   what a rule reports, and the backlog of places that are not clean yet

Everything is enforced except what `backlog.txt` lists. A line of it that is not needed any longer
is a complaint as well, so that the list only shrinks.
"""
