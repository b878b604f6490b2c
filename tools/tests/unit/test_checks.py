"""The house rules refuse what they should and let everything else through."""

from pathlib import Path

import pytest

import checks


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def module(path: Path, lines: int) -> Path:
    return write(path, "x = 1\n" * lines)


def test_a_module_at_the_limit_passes_and_one_line_more_does_not(tmp_path: Path) -> None:
    fits = module(tmp_path / "fits.py", checks.LONGEST_MODULE)
    long = module(tmp_path / "long.py", checks.LONGEST_MODULE + 1)

    found = list(checks.too_long(checks.line_counts([fits, long])))

    assert len(found) == 1
    assert found[0].startswith(f"{long}: 451 lines")


def test_generated_modules_have_no_limit(tmp_path: Path) -> None:
    names = ("a_pb2.py", "a_pb2_grpc.py")
    generated = [module(tmp_path / name, 1_000) for name in names]

    assert checks.line_counts(generated) == {}


def test_the_median_counts_only_modules_below_the_folder(tmp_path: Path) -> None:
    source = tmp_path / "src"
    inside = [module(source / f"m{size}.py", size) for size in (10, 199, 300)]
    outside = [module(tmp_path / f"t{number}.py", 400) for number in range(5)]

    assert not list(checks.median_too_high(checks.line_counts([*inside, *outside]), source))

    inside.append(module(source / "m400.py", 400))
    found = list(checks.median_too_high(checks.line_counts([*inside, *outside]), source))
    assert len(found) == 1
    assert "median" in found[0]


def test_an_empty_tree_has_no_median_to_complain_about(tmp_path: Path) -> None:
    assert not list(checks.median_too_high({}, tmp_path))


@pytest.mark.parametrize(
    "line",
    [
        "https://" + "pypi" + ".org/simple",
        "https://files." + "pythonhosted" + ".org/packages/x.whl",
        "https://" + "proxy" + "." + "golang" + ".org",
        "--index" + "-url https://example.invalid/simple",
        "--find" + "-links /some/where",
        "open('/ro" + "ot/.config')",
    ],
)
def test_addresses_and_machine_paths_are_found_with_their_place(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "notes.txt", f"first\n{line}\n")

    found = list(checks.unwanted_text([path]))

    assert len(found) == 1
    assert found[0].startswith(f"{path}:2:")


def test_ordinary_addresses_and_binary_files_pass(tmp_path: Path) -> None:
    text = write(
        tmp_path / "a.md", "https://kubernetes.io and 127.0.0.1:7780 and --no-emit-index-url\n"
    )
    binary = tmp_path / "b.bin"
    binary.write_bytes(b"\xff\xfe\x00\x80")

    assert not list(checks.unwanted_text([text, binary]))


def test_the_check_does_not_complain_about_itself() -> None:
    own = [Path(checks.__file__), Path(__file__)]

    assert not list(checks.unwanted_text(own))
