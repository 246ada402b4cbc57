"""The HTML report: tables and figures in one file without scripts or external resources."""
