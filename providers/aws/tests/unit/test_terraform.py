"""The least-privilege policy: exactly what the provider calls, and narrow where IAM can be."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bigfleet_provider_aws.errors import SERVICE_OF
from bigfleet_provider_aws.spec import SPEC

FOLDER = Path(__file__).parents[2] / "terraform"
PAGES = Path(__file__).parents[4] / "docs" / "providers" / "aws"
PUBLIC_FILES = {"PriceListBulk", "SpotAdvisor"}
"""Read from the web, without credentials."""
FOR_KEYS = {
    "kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom", "kms:ReEncryptTo",
}  # fmt: skip
BY_LABEL = {
    "ec2:CreateTags", "ec2:DeleteTags", "ec2:StartInstances", "ec2:TerminateInstances",
    "ssm:SendCommand",
}  # fmt: skip


def blocks(text: str, opening: str) -> list[str]:
    """The bodies of all blocks that begin with a line, by counting braces."""
    found = []
    for match in re.finditer(opening, text):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        found.append(text[match.end() : at - 1])
    return found


def statements() -> list[str]:
    """The statements of the role's policy."""
    (policy,) = blocks(
        (FOLDER / "main.tf").read_text("utf-8"), r'"aws_iam_policy_document" "provider" \{'
    )
    return blocks(policy, r"(?:statement|content) \{")


def actions(statement: str) -> set[str]:
    """What a statement allows."""
    lists = re.findall(r"actions\s*=\s*\[(.*?)\]", statement, re.DOTALL)
    return set(re.findall(r'"([a-z0-9]+:\w+)"', " ".join(lists)))


def test_the_policy_allows_what_is_called_and_nothing_else() -> None:
    called = {
        f"{SERVICE_OF.get(op, 'ec2')}:{op}" for op in SPEC.call_names if op not in PUBLIC_FILES
    }
    allowed = {action for statement in statements() for action in actions(statement)}
    assert allowed == called | {"iam:PassRole"} | FOR_KEYS


def test_the_page_lists_the_same_permissions() -> None:
    page = (PAGES / "credentials.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    listed = set(re.findall(r"[a-z0-9]+:[A-Z]\w+", " ".join(rows)))
    assert listed == {action for statement in statements() for action in actions(statement)}


def test_hosts_are_touched_by_their_label_only() -> None:
    for statement in statements():
        if actions(statement) & BY_LABEL and "document/" not in statement:
            by_label = "aws:ResourceTag/bigfleet:provider" in statement
            at_launch = actions(statement) == {"ec2:CreateTags"} and "RunInstances" in statement
            assert by_label or at_launch, statement


def test_only_reads_have_every_resource() -> None:
    for statement in statements():
        if 'resources = ["*"]' in " ".join(statement.split()):
            assert all(re.search(r":(Describe|Get)", action) for action in actions(statement))


def test_every_block_is_closed_and_every_variable_is_declared() -> None:
    text = "\n".join(path.read_text("utf-8") for path in sorted(FOLDER.glob("*.tf")))
    assert text.count("{") == text.count("}")
    used = set(re.findall(r"\bvar\.(\w+)", text))
    assert used == set(re.findall(r'^variable "(\w+)"', text, re.MULTILINE))


@pytest.mark.skipif(shutil.which("terraform") is None, reason="no terraform here")
def test_terraform_reads_the_files_and_finds_them_formatted() -> None:
    command = ["terraform", "fmt", "-check", "-diff", str(FOLDER)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
