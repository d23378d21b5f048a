"""What a replica holds on its devices, term by term, and what real starts have taught about each."""
