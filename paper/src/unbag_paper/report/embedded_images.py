"""Images as part of an HTML page, so that the page needs no other file."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["embedded_figure", "embedded_svg"]


def embedded_svg(svg: bytes) -> str:
    """SVG as the address of an image; scripts inside such an image are not run.

    Examples
    --------
    >>> embedded_svg(b"<svg/>")
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    return "data:image/svg+xml;base64," + b64encode(svg).decode("ascii")


def embedded_figure(figure: Figure, name: str) -> str:
    """A drawn figure; the same drawing gives the same text."""
    import matplotlib

    drawn = BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return embedded_svg(drawn.getvalue())
