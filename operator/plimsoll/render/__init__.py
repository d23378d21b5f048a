"""Makes the Kubernetes objects of a plan: templates are filled with values, parsed and checked. No cluster is asked."""
