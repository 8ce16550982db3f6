"""Rows become tables and figures beside the published numbers."""
