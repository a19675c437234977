"""What the load needs, whatever it runs on."""
