"""What the system does, one verb a file, over the ports."""
