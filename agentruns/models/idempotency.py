"""Which request to start a run has been seen already (E15)."""

from django.conf import settings
from django.db import models


class IdempotencyKey(models.Model):
    """One person's `Idempotency-Key`: it starts `run_id`, and no other run, ever.

    Written before the run, so a request that died half-way is finished by its repeat. `digest`
    is of what was asked for; `answer` is the body that the request and every repeat of it gets.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)
    run_id = models.CharField(max_length=40)
    answer = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="one_run_per_idempotency_key")
        ]

    def __str__(self) -> str:
        return self.key
