"""Which providers a change certifies."""

from certify_changed import CertificationRun, planned, providers_with_http

KNOWN = ("_template", "aws", "digitalocean", "hetzner", "kwok")


def test_a_changed_provider_is_certified_whole_and_no_other() -> None:
    runs = planned(["providers/kwok/src/x.py", "docs/index.md"], KNOWN)
    assert runs == [CertificationRun("kwok"), CertificationRun("kwok", "http")]


def test_a_changed_kit_certifies_one_provider_per_channel_and_the_baseline_of_the_others() -> None:
    runs = planned(["providerkit/src/bigfleet_providerkit/kit.py"], KNOWN)
    whole = {run.provider for run in runs if not run.quick}
    assert whole == {"fake", "_template", "aws", "digitalocean", "hetzner"}
    assert [run for run in runs if run.quick] == [CertificationRun("kwok", quick=True)]
    assert CertificationRun("hetzner", "http") in runs


def test_documents_certify_nothing() -> None:
    assert planned(["providers/aws/README.md", "providerkit/src/x.md"], KNOWN) == []


def test_every_provider_that_is_named_for_a_channel_is_there() -> None:
    known = providers_with_http()
    assert {"_template", "aws", "digitalocean", "hetzner"} <= {
        n for n, http in known.items() if http
    }


def test_a_run_is_called_like_make_does() -> None:
    words = CertificationRun("aws", "http").command()
    assert words[1:] == ["run", "--provider", "aws", "--profile", "all", "--substrate", "http"]
    assert CertificationRun("kwok", quick=True).command()[-1] == "--quick"
