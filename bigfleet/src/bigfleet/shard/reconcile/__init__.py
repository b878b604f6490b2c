"""What providers say, brought together with what the shard knows.

    lister     asks each provider in its own time, and merges what has come in
    asking     one List: pages, what is unchanged, what has to be decoded
    merger     answers into the book: changes, losses, machines that are gone
    massloss   when many vanish at once
    ownership  which machines are this shard's
    journal    what only the shard knows, on disk before it is acted on
    restamps   for whom machines count since they were configured, on disk
    restoring  the journal and the first List after a restart
    epoch      the number by which providers tell processes of one shard apart

A provider's word is always taken, also when it jumped; who has to hear of it follows from the
book's changes.
"""
