"""In-memory stand-ins that keep the promises of the ports; `tests/contract` holds them to it."""
