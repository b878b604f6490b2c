"""What survives: an interface, a durable engine, one in memory, and the rows they hold."""
