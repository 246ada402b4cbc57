"""Results as one page: tables and figures that need no network and no script."""
