"""Data: instance specifications, accelerators, the dated price snapshot, and the reader of their rows."""
