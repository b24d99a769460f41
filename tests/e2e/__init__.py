"""The whole line with real processes: daemon, command line, git, and pi where only loopback answers."""
