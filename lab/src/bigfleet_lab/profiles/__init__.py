"""What a scale test runs: files of profiles and substrates, and what they amount to.

    errors        a mistake in a file, with its line and the remedy
    document      YAML read key by key, every value with its line
    model         profiles as values;  read_profile makes them from a file, and checks them
    substrate     where a run takes place: its own kind of file
    actions       the disturbances a profile may ask for
    ci_form       a quarter of the time (CI=1), and smaller sizes (--scale-factor)
    archetypes    kinds of workloads and shapes of machines, as fixed test data
    fleet_plan    clusters, objects and machines that a profile amounts to, and their memory
    read_slo      thresholds and expectations;  gate_rules  the gates that they amount to
    catalogue     the files that are shipped: `files` and `substrates`

Nothing here starts a process or measures anything: that is the distribution bigfleet_scaletest.
"""
