"""`make bench`: how long a durable call and a Stop take, and what they are measured against.

`python -m tests.bench` starts servers of its own, runs each part as a process of its own
(`tests.bench.job`), and prints a table, or JSON. See docs/performance.md.
"""
