"""How fast and how dear is it, compared with what people would build instead? Measured on one machine, in one run."""
