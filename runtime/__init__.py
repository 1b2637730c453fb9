"""What runs a job: channels, tasks, checkpoints, recovery; the facade that users import."""
