"""The AI providers behind one port."""
