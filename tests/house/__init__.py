"""What holds for the house as a whole: sizes, imports, promises, hygiene."""
