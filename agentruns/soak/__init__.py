"""The soak: random runs on real workers and the demo world, while people stop them at random and
workers and servers are killed; then the ledger is held against what the world recorded by itself.

Two processes. The host (`host.py`) has the stack and breaks it; the player (`player.py`), which
has the stack's environment, starts runs and is everybody who uses them.
"""
