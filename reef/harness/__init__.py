"""The harness: the tree of entries, what may enter it, how an agent is given it, and how it is run."""
