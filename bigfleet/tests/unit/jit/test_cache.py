"""Compiled kernels lie in one place, for the compiler and for the check that finds them."""

import sys
from pathlib import Path

import pytest

from bigfleet.jit.cache import cache_of, home, is_compiled, of_checkout

ROOT = Path(__file__).parents[4]
SOURCE = Path("bigfleet", "src", "bigfleet", "jit", "cache.py")


def checkout(folder: Path) -> Path:
    (folder / "bigfleet").mkdir()
    (folder / "bigfleet" / "pyproject.toml").touch()
    (folder / "Makefile").touch()
    return folder / SOURCE


def test_a_variable_names_the_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert home() == tmp_path
    assert cache_of(ROOT / "tools").parent == tmp_path


def test_a_checkout_keeps_them_where_make_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert home() == ROOT / ".numba"
    assert "NUMBA_CACHE_DIR ?= $(CURDIR)/.numba" in (ROOT / "Makefile").read_text("utf-8")


def test_any_checkout_will_do(tmp_path: Path) -> None:
    assert of_checkout(checkout(tmp_path)) == tmp_path / ".numba"


@pytest.mark.parametrize("missing", ["Makefile", "bigfleet/pyproject.toml"])
def test_what_only_looks_like_a_checkout_is_none(tmp_path: Path, missing: str) -> None:
    source = checkout(tmp_path)
    (tmp_path / missing).unlink()
    assert of_checkout(source) is None


def test_an_installed_package_keeps_nothing_beside_itself(tmp_path: Path) -> None:
    installed = tmp_path / "lib" / "site-packages" / "bigfleet" / "jit"
    assert of_checkout(installed / "cache.py") is None


def test_a_folder_of_kernels_is_compiled_once_something_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    folder = ROOT / "tools"
    assert not is_compiled(folder)
    cache_of(folder).mkdir()
    (cache_of(folder) / "f.py19.1.nbc").touch()
    assert not is_compiled(folder), "another Python's"
    (cache_of(folder) / f"f.py{sys.version_info[0]}{sys.version_info[1]}.1.nbc").touch()
    assert is_compiled(folder)
