"""The one way to run somebody else's program: a throwaway root, and only loopback where the system allows it."""
