"""What a job remembers: keyed and operator state, timer queues, snapshots and their storage."""
