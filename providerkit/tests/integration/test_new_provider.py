"""A copy of the example runs before a line is changed, inside the repository and outside it."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import new_provider
from bigfleet_providerkit import State
from bigfleet_providerkit.testing import ProviderProcess, Remote, Shard


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "tests",
    [
        ("tests/unit", "tests/integration/test_life.py"),
        pytest.param(("tests",), marks=pytest.mark.exhaustive),
    ],
    ids="+".join,
)
async def test_a_copy_outside_the_repository_serves_and_passes_its_tests(
    tmp_path: Path, tests: tuple[str, ...]
) -> None:
    folder = new_provider.copy_template("my-cloud", tmp_path)
    assert folder == tmp_path / "bigfleet-provider-my-cloud"
    left = [
        path
        for path in folder.rglob("*")
        if path.is_file() and "template" in path.read_text("utf-8").replace("templates", "").lower()
        and path.suffix == ".py"
    ]  # fmt: skip
    assert [path for path in left if "test_template" not in path.name] == []
    assert (folder / "tests" / "support" / "my_cloud_cloud.py").exists()
    assert not [p for p in folder.rglob("*.md") if "providers/my-cloud/" in p.read_text("utf-8")]
    assert "bigfleet-provider-my-cloud" in (folder / "chart" / "Chart.yaml").read_text("utf-8")
    assert (folder / "chart" / "charts" / "bigfleet-provider-lib" / "Chart.yaml").exists()
    assert "COPY api" not in (folder / "Dockerfile").read_text("utf-8")
    path = os.pathsep.join([str(folder / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {"PYTHONPATH": path}
    command = ProviderProcess.module("bigfleet_provider_my_cloud")
    version = await asyncio.to_thread(
        subprocess.run, [*command, "--version"], env={**os.environ, **environment},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert version.stdout.startswith("bigfleet-provider-my-cloud 0.1.0 (providerkit ")
    process = ProviderProcess(command, "--use-fake-backend", environment=environment)
    with process.wait_open() as provider:
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            machine = (await shard.machines())[0].id
            await shard.create(machine)
            await shard.until(machine, State.IDLE)
        assert provider.stop() == 0
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-m", "pytest", "-q", "-x", *tests], cwd=folder,
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_a_copy_inside_is_made_known_to_the_tools(tmp_path: Path) -> None:
    shutil.copy(new_provider.ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    folder = new_provider.copy_template("mycloud", None, tmp_path)
    assert (folder / "src" / "bigfleet_provider_mycloud" / "substrate.py").exists()
    text = (tmp_path / "pyproject.toml").read_text("utf-8")
    assert "providers/mycloud/src" in text
    assert text.count("providers/mycloud/tests/support") == 3, "ruff, mypy and pytest know it"
    assert text.count('"bigfleet_provider_mycloud"') == text.count('"bigfleet_provider_template"')
    pages = tmp_path / "docs" / "providers" / "mycloud"
    assert len(list(pages.glob("*.md"))) == 9
    assert not (folder / "docs").exists()
    assert (folder / "requirements.lock").exists()
    image = (folder / "Dockerfile").read_text("utf-8")
    assert "COPY providers/mycloud/requirements.lock" in image
    chart = tmp_path / "deploy" / "helm" / "bigfleet-provider-mycloud"
    assert "The provider mycloud of BigFleet" in (chart / "Chart.yaml").read_text("utf-8")
    assert "template" not in (chart / "values.schema.json").read_text("utf-8")
    with pytest.raises(new_provider.CannotCopyError, match="exists"):
        new_provider.copy_template("mycloud", None, tmp_path)


@pytest.mark.parametrize("name", ["fake", "fault", "template", "lib"])
def test_a_name_that_is_taken_is_refused_before_anything_is_made(name: str, tmp_path: Path) -> None:
    shutil.copy(new_provider.ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    with pytest.raises(new_provider.CannotCopyError, match="is taken"):
        new_provider.copy_template(name, None, tmp_path)
    chart = tmp_path / "deploy" / "helm" / "bigfleet-provider-mycloud"
    chart.mkdir(parents=True)
    with pytest.raises(new_provider.CannotCopyError, match="exists"):
        new_provider.copy_template("mycloud", None, tmp_path)
    assert not (tmp_path / "providers").exists()


@pytest.mark.parametrize("name", ["", "My", "a b", "x" * 31, "-x", "../y"])
def test_a_bad_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(new_provider.CannotCopyError, match="not a name for a provider"):
        new_provider.copy_template(name, tmp_path)
