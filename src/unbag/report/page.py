"""The page about a fitted table."""

from __future__ import annotations

from typing import Any

__all__ = ["render_report"]


def render_report(record: dict[str, Any]) -> str:
    """Page"""
    return "<html></html>"
