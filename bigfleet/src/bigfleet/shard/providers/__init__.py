"""What providers say, brought together with what the shard knows.

    lister           asks each provider in its own time, and merges what has come in
    list_reader      one List: pages, what is unchanged, what has to be decoded
    get_poller       single machines: Get, where a List would come too late
    provider_poll    what is known of one provider while it is asked
    answers          the queue between asking and merging
    digests          by which bytes each machine was last seen
    apply_lists      answers into the book: changes, losses, machines that are gone or not ours
    mass_loss        when many vanish at once
    create_failures  why a Create failed: the classes
    create_streaks   Creates that fail again and again, for those who explain a cycle

A provider's record is always taken, also when it jumped; who has to hear of it follows from the
book's changes. Which machines are ours is `state.ownership`.
"""
