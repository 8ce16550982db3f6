"""All results of the paper on one page."""
