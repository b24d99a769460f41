"""Evaluation: checks and episodes on a candidate and on what is served now, and the rule that decides over them."""
