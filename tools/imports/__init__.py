"""Tools that somebody else describes: an MCP server, or an OpenAPI document.

What they say of themselves binds nobody. They arrive disabled and untagged, as what cannot be
undone; an admin tags each; and what changes afterwards is disabled again.
"""
