"""What should run: pure functions from a resource, an inventory and facts to a Plan that carries its reasons."""
