"""Five drills: commands that break something on purpose and say whether the promise held."""
