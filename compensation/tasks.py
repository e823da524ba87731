"""Celery tasks of undo: thin doors. Each may run twice, late or never."""

from celery import shared_task

from compensation import saga


@shared_task(name="compensation.tasks.undo_next")
def undo_next(run_id: str) -> None:
    """Carry out the next undo step of a run."""
    saga.run_next(run_id)


@shared_task(name="compensation.tasks.undo_after_stop")
def undo_after_stop(run_id: str) -> None:
    """Plan what is undone by itself after a Stop."""
    saga.undo_after_stop(run_id)


@shared_task(name="compensation.tasks.sweep")
def sweep() -> None:
    """Ring again for whatever undo a lost doorbell or a dead worker left lying."""
    saga.sweep()
