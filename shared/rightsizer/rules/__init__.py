"""Pure rules: verbs that turn nouns into nouns. They know neither each other nor the world."""
