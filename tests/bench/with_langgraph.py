"""A LangGraph graph with its Postgres checkpointer, durability `sync`: the next node starts only
once the checkpoint of the one before is written.
"""

import time
from typing import TypedDict
from uuid import uuid4

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph

from tests.bench.databases import database
from tests.bench.play import appended


class State(TypedDict):
    left: int


class LangGraph:
    def __init__(self) -> None:
        self._entered: list[float] = []
        self._kept = PostgresSaver.from_conn_string(database("langgraph"))
        saver = self._kept.__enter__()
        saver.setup()
        graph = StateGraph(State)
        graph.add_node("node", self._node)
        graph.add_edge(START, "node")
        graph.add_conditional_edges("node", lambda state: "node" if state["left"] else END)
        self._graph = graph.compile(checkpointer=saver)

    def _node(self, state: State) -> State:
        self._entered.append(time.perf_counter())
        appended.append(f"node {state['left']}")
        return {"left": state["left"] - 1}

    def round(self, steps: int) -> dict[str, list[float]]:
        """From each node's start to the next one's, so there is one node more."""
        self._entered.clear()
        config = {"configurable": {"thread_id": uuid4().hex}, "recursion_limit": steps + 5}
        self._graph.invoke({"left": steps + 1}, config, durability="sync")
        times = zip(self._entered, self._entered[1:], strict=False)
        return {"langgraph": [after - before for before, after in times]}


def contestant() -> LangGraph:
    return LangGraph()
