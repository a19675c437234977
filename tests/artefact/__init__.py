"""The built functions under the real Lambda runtime client."""
