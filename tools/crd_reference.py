"""Writes docs/reference/crds.md from the CRDs, so that the two never disagree.

`make crds` writes the page; `make docs` fails when it is not what the CRDs say. The words come from
the descriptions and messages in api/crd; this file only lays them out.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "reference" / "crds.md"
ORDER: Final = ("capacityrequests", "upcomingnodes", "availablecapacities")
HEAD: Final = """\
# Custom resources

<!-- Written by tools/crd_reference.py from api/crd; `make crds` writes it again. -->

Group `bigfleet.lucy.sh`, version `v1alpha1`. `kubectl get fleet` lists all three kinds. The
operator's chart installs them; they need Kubernetes 1.31 or newer. A wrong object is refused by the
API server with the words given here.
"""

Schema = Mapping[str, Any]


def render(crds: Sequence[Schema]) -> str:
    """The whole page."""
    return "\n".join([HEAD, *("\n".join(_kind(crd)) for crd in crds)])


def _kind(crd: Schema) -> Iterator[str]:
    spec = crd["spec"]
    names, version = spec["names"], spec["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    columns = [column["name"] for column in version["additionalPrinterColumns"]]
    yield f"## {names['kind']}\n"
    yield f"{schema['description']}\n"
    yield f"- `kubectl get {names['plural']}`, short: {_codes(names['shortNames'])}"
    yield f"- {'In a namespace' if spec['scope'] == 'Namespaced' else 'Of the whole cluster'}"
    yield f"- Columns: {', '.join(columns)}"
    for field in version.get("selectableFields", ()):
        path = field["jsonPath"].removeprefix(".")
        yield f"- Field selector: `--field-selector {path}=...`"
    yield ""
    for part in ("spec", "status"):
        if part in schema["properties"]:
            yield from _part(part, schema["properties"][part])
    rules = list(_rules("", schema))
    if rules:
        yield "### Rules\n"
        yield from rules
        yield ""


def _part(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{schema['description']}\n"
    yield "| field | type | meaning |"
    yield "| --- | --- | --- |"
    yield from _rows("", schema)
    yield ""


def _rows(path: str, schema: Schema) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        here = f"{path}{name}"
        must = ", required" if name in required else ""
        meaning = field.get("description", "").replace("|", "\\|")
        yield f"| `{here}` | {_type(field)}{must} | {meaning} |"
        if field.get("type") == "array":
            yield from _rows(f"{here}[].", field["items"])
        else:
            yield from _rows(f"{here}.", field)


def _type(field: Schema) -> str:
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if "additionalProperties" in field:
        return f"map of {_type(field['additionalProperties'])}"
    if field.get("format") == "date-time":
        return "time"
    return str(field.get("type", "object"))


def _rules(path: str, schema: Schema) -> Iterator[str]:
    """Messages of all rules, each once, with the field that they are about."""
    seen = set()
    for rule in schema.get("x-kubernetes-validations", ()):
        line = f"- {f'`{path}`: ' if path else ''}{rule['message']}"
        if line not in seen:
            seen.add(line)
            yield line
    for name, field in schema.get("properties", {}).items():
        yield from _rules(f"{path}.{name}".removeprefix("."), field)
    if "items" in schema:
        yield from _rules(f"{path}[]", schema["items"])
    if "additionalProperties" in schema:
        yield from _rules(f"{path}.*", schema["additionalProperties"])


def _codes(texts: Sequence[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def read(folder: Path) -> list[Schema]:
    """The CRDs, in the order in which people meet them."""
    return [
        yaml.safe_load((folder / f"bigfleet.lucy.sh_{name}.yaml").read_text(encoding="utf-8"))
        for name in ORDER
    ]


def main(argv: Sequence[str]) -> int:
    """Write the page, or say that it is old."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args(argv)
    page = render(read(ROOT / "api" / "crd"))
    if not options.check:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page, encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        print(f"{PAGE.relative_to(ROOT)} is older than api/crd; run: make crds", file=sys.stderr)
        return 1
    print("crds: the reference says what the CRDs say")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
