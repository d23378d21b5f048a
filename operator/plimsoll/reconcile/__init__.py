"""One turn of one deployment: observe, plan, move, apply, tell. It starts from what is there, never from what changed."""
