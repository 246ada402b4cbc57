"""Source-level rewrite rules on a C++ syntax tree."""
