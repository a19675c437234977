"""The real handlers, deployed from the template into the sandbox, each with its own role."""
