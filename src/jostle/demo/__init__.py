"""What `jostle demo` shows, and the stage for it: the product itself, with a home of its own and simulated cards."""
