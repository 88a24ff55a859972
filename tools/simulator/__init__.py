"""A stand-in for the AI providers: their wire shapes, their faults, and a ledger of every call.

`python -m tools.simulator --port P --data-dir D` serves it; `process.start` does the same for a
test and `client.SimulatorClient` scripts it.
"""
