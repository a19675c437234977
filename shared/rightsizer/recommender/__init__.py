"""From metrics to a recommendation and a proposal: pure functions on the nouns of `domain`."""
