"""Where imported tools come from, and what each of them said of itself when it was last seen."""

from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

# No underscore: a provider is told “__” for the dot that follows (planner/history.py).
SLUG = RegexValidator(
    r"^[a-z][a-z0-9-]{0,19}\Z", _("A small letter, then small letters, figures or “-”, up to 20.")
)


class ToolSource(models.Model):
    """A server or a document. Its secrets are never here: only the names of the environment
    variables that hold them.
    """

    class Kind(models.TextChoices):
        MCP_HTTP = "mcp_http", _("an MCP server, by its address")
        MCP_STDIO = "mcp_stdio", _("an MCP server, started as a program")
        OPENAPI = "openapi", _("an OpenAPI document")

    slug = models.CharField(
        _("name"),
        max_length=20,
        primary_key=True,
        validators=[SLUG],
        help_text=_("The names of its tools begin with it, as in “acme.search”."),
    )
    kind = models.CharField(_("kind"), max_length=10, choices=Kind)
    address = models.CharField(_("address"), max_length=1000)
    base_url = models.CharField(_("base address"), max_length=1000, blank=True)
    secrets = models.JSONField(_("secrets"), default=dict, blank=True)  # header or variable → name
    says_of_itself = models.CharField(_("says of itself"), max_length=200, blank=True)
    imported_at = models.DateTimeField(_("looked at"), null=True, blank=True)
    problem = models.TextField(_("last problem"), blank=True)

    class Meta:
        verbose_name = _("source of tools")
        verbose_name_plural = _("sources of tools")
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=["mcp_http", "mcp_stdio", "openapi"]),
                name="toolsource_kind_known",
            )
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def is_mcp(self) -> bool:
        return self.kind != ToolSource.Kind.OPENAPI


class ImportedTool(models.Model):
    """One tool as its source described it. Its policy is the Tool row of the same name.

    `revision` is a digest of all that the source said of it: title, description, schema, hints,
    details (an operation's method, path and parameters). `changes`: what was different when it
    was last disabled for that (differences.py).
    """

    name = models.CharField(max_length=100, primary_key=True)
    source = models.ForeignKey(ToolSource, models.CASCADE, related_name="tools")
    remote_name = models.CharField(max_length=200)
    title = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    schema = models.JSONField()
    hints = models.JSONField(default=dict)
    details = models.JSONField(default=dict)
    revision = models.CharField(max_length=64)
    changes = models.JSONField(default=list)
    first_seen = models.DateTimeField(auto_now_add=True)
    is_gone = models.BooleanField(default=False)

    class Meta:
        verbose_name = _("imported tool")
        verbose_name_plural = _("imported tools")
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "remote_name"], name="importedtool_once_per_source"
            )
        ]

    def __str__(self) -> str:
        return self.name
