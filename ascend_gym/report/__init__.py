"""What people and scripts read: summaries of evaluations and searches, and their display."""
