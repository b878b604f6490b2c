"""The container files, reviewed by rules: no engine runs here to build them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "bigfleet" / "Dockerfile", *sorted(ROOT.glob("providers/*/Dockerfile"))]
NAMES = [str(path.relative_to(ROOT).parent) for path in FILES]


def stages_of(path: Path) -> list[list[str]]:
    """The instructions of each stage, comments and line breaks removed."""
    text = re.sub(r"^#.*\n", "", path.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    stages: list[list[str]] = []
    for line in lines:
        if line.startswith("FROM "):
            stages.append([])
        if stages:
            stages[-1].append(line)
    return stages


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_only_the_last_stage_is_shipped_and_it_runs_nothing_as_root(path: Path) -> None:
    *before, last = stages_of(path)
    assert len(before) >= 1
    assert not [line for line in last if line.startswith(("RUN", "ADD"))]
    assert "USER 65532:65532" in last
    (entry,) = [line for line in last if line.startswith("ENTRYPOINT")]
    assert re.fullmatch(r'ENTRYPOINT \["/app/bin/[a-z-]+"\]', entry)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_packages_are_fetched_against_hashes_and_in_one_place(path: Path) -> None:
    fetching, building, _ = stages_of(path)
    (run,) = [line for line in fetching if line.startswith("RUN")]
    assert "--require-hashes" in run
    (lock,) = [line.split()[1] for line in fetching if line.startswith("COPY")]
    own = path.parent / "requirements.lock"
    assert lock == (str(own.relative_to(ROOT)) if own.exists() else "requirements/dev.lock")
    assert run.endswith((f"-r {lock}", "-r requirements.lock"))
    assert "ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels" in building


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_images_have_plain_names_and_can_be_pinned(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.search(r"^ARG PYTHON=python:3\.\d+-slim$", text, re.MULTILINE)
    for stage in stages_of(path):
        assert stage[0].split()[1] in ("${PYTHON}", "wheels")


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_what_is_copied_is_there_and_not_ignored(path: Path) -> None:
    allowed = {
        line[1:].rstrip("/")
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    for stage in stages_of(path):
        for line in stage:
            if line.startswith("COPY ") and "--from=" not in line:
                source = line.split()[1]
                assert (ROOT / source).exists(), source
                assert any(source == one or source.startswith(f"{one}/") for one in allowed)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_the_entry_point_is_an_executable_of_the_distribution(path: Path) -> None:
    (entry,) = re.findall(r'ENTRYPOINT \["/app/bin/([a-z-]+)"\]', path.read_text("utf-8"))
    project = (path.parent / "pyproject.toml").read_text("utf-8")
    assert f"{entry} = " in project
