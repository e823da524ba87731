"""`make load`: one account does its worst while another presses Stop; how long does Stop take?

`python -m tests.load` starts a stack of its own, an attack (`tests.load.attack`) and somebody who
presses Stop (`tests.load.stopping`), each as a process, and prints a table.
"""
