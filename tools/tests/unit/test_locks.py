"""The locks agree with each other and with what the distributions need; no resolver runs here."""

import re
from pathlib import Path

import pytest

import locks

DEV, SDKS = locks.pins(locks.DEV.with_suffix(".lock")), locks.pins(locks.SDKS.with_suffix(".lock"))
NAMES = [folder.name for folder in locks.providers()]


def name_of(requirement: str) -> str:
    """The name of a requirement as a lock writes it."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found.group()).lower()


def asked_in(source: Path) -> set[str]:
    lines = (line.strip() for line in source.read_text("utf-8").splitlines())
    return {name_of(line) for line in lines if line and not line.startswith("#")}


def test_the_environment_of_developers_holds_no_sdk() -> None:
    assert not (asked_in(locks.SDKS) - {"requests"}) & DEV.keys()


def test_every_sdk_has_a_lower_bound() -> None:
    lines = locks.SDKS.read_text("utf-8").splitlines()
    wanted = [line for line in lines if line.strip() and not line.startswith("#")]
    assert wanted
    assert [line for line in wanted if ">=" not in line] == []


def test_packages_of_both_locks_have_one_version() -> None:
    assert asked_in(locks.SDKS) <= SDKS.keys()
    assert {n: v for n, v in SDKS.items() if n in DEV and DEV[n] != v} == {}


# pydo, DigitalOcean's SDK, depends on this package of Azure's.
BROUGHT_BY_ITS_SDK = {"digitalocean": {"azure-identity"}}


@pytest.mark.parametrize("name", NAMES)
def test_an_image_has_what_its_provider_needs_and_no_other_sdk(name: str) -> None:
    folder = locks.ROOT / "providers" / name
    lock = locks.pins(folder / locks.IMAGE_LOCK)
    wanted = {name_of(line) for line in locks.image_requirements(folder)}
    assert wanted <= lock.keys(), "run make lock NAME=" + name
    chosen = {**SDKS, **DEV}
    assert {n: v for n, v in lock.items() if n in chosen and chosen[n] != v} == {}
    foreign = asked_in(locks.SDKS) - {"requests"} - wanted - BROUGHT_BY_ITS_SDK.get(name, set())
    assert not foreign & lock.keys(), "an SDK of another cloud"


LOCKS = [
    "requirements/dev.lock",
    "requirements/providers.lock",
    *(f"providers/{name}/requirements.lock" for name in NAMES),
]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_of_a_lock_has_hashes_and_no_source(lock: str) -> None:
    text = (locks.ROOT / lock).read_text("utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in text
