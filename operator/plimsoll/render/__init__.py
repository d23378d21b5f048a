"""Which objects a plan is: templates filled with values, parsed and checked before anybody uses them. No cluster is reached."""
