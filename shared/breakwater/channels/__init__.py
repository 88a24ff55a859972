"""Ways out of the system: bus events, notifications, dead letters."""
