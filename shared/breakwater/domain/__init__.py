"""The rules: values, tables and pure functions. No clock, no randomness, no network, no logging."""
