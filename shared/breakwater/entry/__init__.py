"""How an event of AWS becomes a call of a use case, and its answer an answer of AWS."""
