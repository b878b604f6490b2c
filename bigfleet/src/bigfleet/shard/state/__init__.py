"""The files of a shard's data directory: what outlives a restart.

    data_dir            all of them, read before anything is begun
    state_file          one value in a file that is replaced as a whole; sets of ids
    disk_health         whether the last write succeeded, for /readyz
    disk                the directory on a real disk: files that are whole or untouched
    shard_id            whose the directory is
    epoch               the number by which providers tell processes of one shard apart
    ownership           which machines are this shard's
    journal             what only the shard knows of its machines, on disk before it is acted on
    restamps            for which needs machines count since they were configured
    excluded_machines   ids of machines that a person keeps out of every decision
    departed_clusters   clusters that are gone for good
    pause               the kill switch
    assignments         quotas and providers that a coordinator assigned
    done_instructions   a coordinator's instructions that were carried out, so that each is once
    checksummed_lines   the format of files that are appended to
    rotating_file       a log file that is set aside when it has grown
    errors              files that cannot be used

Nothing here acts: who owns a fact in memory is written in the rooms above.
"""
