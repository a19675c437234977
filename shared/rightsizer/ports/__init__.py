"""What the flows need of the world, as Protocols that adapters and tests fulfil."""
