"""No two behaviours boot a provider on the same port: they run side by side."""

import ast
from collections import defaultdict
from pathlib import Path

import bigfleet_conformance
from bigfleet_conformance.runner.source import BootPlan

PACKAGE = Path(bigfleet_conformance.__file__).parent
# Which argument is the offset of the port.
PLACES = {"plan": 1, "BootPlan": 1, "at": 0, "boot": 3, "refused_or_right": 3}
COUNTED_UP = {17: (17, 18, 19)}
"""Where a call adds a counter to the offset."""


def offsets_of(function: ast.AsyncFunctionDef | ast.FunctionDef) -> set[int]:
    found = set()
    for call in ast.walk(function):
        if isinstance(call, ast.Call):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            place = PLACES.get(name)
            if name == "at" and len(call.args) != 1:
                continue  # the token of a walker
            if place is not None and len(call.args) > place:
                found |= numbers_in(call.args[place])
    return found


def numbers_in(argument: ast.expr) -> set[int]:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, int):
        return {argument.value}
    if isinstance(argument, ast.BinOp) and isinstance(argument.left, ast.Constant):
        value = argument.left.value
        assert isinstance(value, int)
        return set(COUNTED_UP[value])
    return set()


def test_every_offset_belongs_to_one_behaviour() -> None:
    users: dict[int, set[str]] = defaultdict(set)
    for folder in ("behaviours", "runner"):
        for path in sorted((PACKAGE / folder).glob("*.py")):
            module = ast.parse(path.read_text("utf-8"))
            classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
            for node in (*module.body, *(method for one in classes for method in one.body)):
                if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef):
                    for offset in offsets_of(node):
                        users[offset].add(f"{path.stem}.{node.name}")
    assert len(users) >= 25
    assert {offset: names for offset, names in users.items() if len(names) > 1} == {}
    assert "offset" in BootPlan.__dataclass_fields__
