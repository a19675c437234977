"""The template as a test subject: translated in process, resolved for given parameters."""
