"""Reading the session files of coding agents, so that sessions from before reef become records.

A transcript is an agent's own note of a session, not a record of what went over the wire: each module says what its
agent leaves out. Nothing here writes, neither to the source nor anywhere else.
"""
