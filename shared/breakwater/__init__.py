"""Breakwater: AI-provider work that survives crashes, outages and duplicates."""
