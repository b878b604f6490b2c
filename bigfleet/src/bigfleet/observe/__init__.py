"""What a process shows to the outside: metrics, logs, health and audit records."""
