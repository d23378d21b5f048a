"""Which devices a deployment may take, who has them, what they cost, and what is left for the next."""
