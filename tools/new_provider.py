"""`make new-provider NAME=x [DEST=dir]`: copies providers/_template under a new name.

Renames distribution, package, executable, classes, chart and pages. Inside the repository the copy
has all its places at once, so that later work touches these folders only:

    providers/x                         code, tests, image, lock, conformance.yaml
    deploy/helm/bigfleet-provider-x     chart
    docs/providers/x                    the nine pages, which the site's navigation finds by itself
    pyproject.toml                      paths and layers of checkers and tests

`make setup`, `make lock` and CI look for providers by their folders. With DEST the copy lands in
DEST/bigfleet-provider-x and depends on the released distributions alone.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEMPLATE = ROOT / "providers" / "_template"
CHARTS = Path("deploy") / "helm"
PAGES = Path("docs") / "providers"
LIBRARY = "bigfleet-provider-lib"
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc", ".*_cache")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
TAKEN = frozenset({"fake", "fault", "lib", "template"})
"""Names of the in-tree fake, the fault provider, the charts' library and the example itself."""


OUTSIDE_IMAGE = """\
# The image of this provider: docker build .
# PYTHON is a slim Python image, pinned by digest where images are released.
ARG PYTHON=python:3.13-slim
FROM ${PYTHON} AS build
COPY . /src
RUN python -m venv /app && /app/bin/pip install --quiet /src

FROM ${PYTHON}
COPY --from=build /app /app
USER 65532
EXPOSE 9001 9002
ENTRYPOINT ["/app/bin/bigfleet-provider-NAME"]
"""


class CannotCopyError(ValueError):
    """The copy cannot be made; the text says why and what to do."""


def words_for(name: str) -> list[tuple[str, str]]:
    """What is replaced by what, longest first."""
    package = name.replace("-", "_")
    camel = "".join(part.capitalize() for part in name.split("-"))
    return [
        ("bigfleet_provider_template", f"bigfleet_provider_{package}"),
        ("bigfleet-provider-template", f"bigfleet-provider-{name}"),
        ("bigfleet/provider-template", f"bigfleet/provider-{name}"),
        ("providers/_template", f"providers/{name}"),
        ("conformance-_template", f"conformance-{name}"),
        ("TemplateSubstrate", f"{camel}Substrate"),
        ("TemplateOptions", f"{camel}Options"),
        ('name="template"', f'name="{name}"'),
        ("provider `template`", f"provider `{name}`"),
        ("# Provider template", f"# Provider {name}"),
        ("The provider template of", f"The provider {name} of"),
        ("template_cloud", f"{package}_cloud"),
        ("EXAMPLE_TOKEN", f"{package.upper()}_TOKEN"),
    ]


def renamed(text: str, name: str) -> str:
    """A file's text, or its path, under the new name."""
    for old, new in words_for(name):
        text = text.replace(old, new)
    return text


def copy_template(name: str, dest: Path | None, root: Path = ROOT) -> Path:
    """Make the copy; the folder it lies in."""
    if not NAME.fullmatch(name) or len(name) > 30:
        raise CannotCopyError(
            f"NAME={name!r} is not a name for a provider; use a-z, 0-9 and -, at most 30 characters"
        )
    if name in TAKEN:
        raise CannotCopyError(f"NAME={name} is taken by a part of this repository; choose another")
    target = root / "providers" / name if dest is None else dest / f"bigfleet-provider-{name}"
    pages = root / PAGES / name
    for made in (target, root / CHARTS / f"bigfleet-provider-{name}", pages):
        if made.exists() and (dest is None or made == target):
            raise CannotCopyError(f"{made} exists; choose another name or remove it")
    copy_renamed(TEMPLATE, target, name)
    chart = ROOT / CHARTS / "bigfleet-provider-template"
    if dest is None:
        copy_renamed(chart, root / CHARTS / f"bigfleet-provider-{name}", name)
        pages.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(target / "docs", pages)
        make_known(name, root / "pyproject.toml")
    else:
        copy_renamed(chart, target / "chart", name)
        shutil.copytree(ROOT / CHARTS / LIBRARY, target / "chart" / "charts" / LIBRARY)
        settle_outside(name, target)
    return target


def copy_renamed(source: Path, target: Path, name: str) -> None:
    """Copy a folder with everything in it under the new name."""
    shutil.copytree(source, target, ignore=LEFT_OUT)
    for path in sorted(target.rglob("*"), key=lambda path: -len(path.parts)):
        if path.is_file():
            text = path.read_text("utf-8")
            path.write_text(renamed(text, name), "utf-8")
        new = path.with_name(renamed(path.name, name))
        if new != path:
            path.rename(new)


def make_known(name: str, pyproject: Path) -> None:
    """Add the copy wherever the tools name the example: paths, packages and layers."""
    text = pyproject.read_text("utf-8")
    package = f"bigfleet_provider_{name.replace('-', '_')}"
    for inside in ("src", "tests/support"):
        line = f'    "$MYPY_CONFIG_FILE_DIR/providers/_template/{inside}",\n'
        text = text.replace(line, line + line.replace("_template", name))
        quoted = f'"providers/_template/{inside}"'
        text = text.replace(quoted, f"{quoted}, {quoted.replace('_template', name)}")
    text = text.replace(
        '"bigfleet_provider_template"', f'"bigfleet_provider_template", "{package}"'
    )
    pyproject.write_text(text, "utf-8")


def settle_outside(name: str, target: Path) -> None:
    """Outside the repository the copy stands at the root and takes what was released."""
    for path in (*target.rglob("*.md"), *target.rglob("*_cloud.py")):
        text = path.read_text("utf-8")
        path.write_text(text.replace(f"providers/{name}/", ""), "utf-8")
    (target / "requirements.lock").unlink()
    (target / "Dockerfile").write_text(OUTSIDE_IMAGE.replace("NAME", name), "utf-8")
    add_tools(target / "pyproject.toml")


def add_tools(pyproject: Path) -> None:
    """The settings of its own tests."""
    extra = """
[project.optional-dependencies]
test = [
    "bigfleet-conformance",
    "bigfleet-fakecloud",
    "pytest>=8",
    "pytest-asyncio>=0.24",
]

[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
pythonpath = ["src"]
testpaths = ["tests"]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
"""
    pyproject.write_text(pyproject.read_text("utf-8").rstrip() + "\n" + extra, "utf-8")


def main(argv: Sequence[str]) -> int:
    """Copy and say what comes next."""
    parser = argparse.ArgumentParser(prog="make new-provider", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--dest", type=Path, help="a folder outside the repository")
    options = parser.parse_args(argv)
    try:
        target = copy_template(options.name, options.dest)
    except CannotCopyError as error:
        print(error, file=sys.stderr)
        return 2
    shown = target.relative_to(ROOT) if options.dest is None else target
    certify = (
        f"make setup && make conformance-{options.name}"
        if options.dest is None
        else f"pip install {shown} && bigfleet-conformance run "
        f'--exec "bigfleet-provider-{options.name}" --profile all'
    )
    print(f"Made {shown}. Certify it before you change a line:\n    {certify}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
