"""Where models come from: clients of hubs, stores and registries, one way to fetch from all of them, and one to read a little."""
