"""What holds for the whole tree: sizes, names, imports, what a process loads, what the wheel carries."""
