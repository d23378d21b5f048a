"""Which ways there are to cut a model over devices, and the rule by which each other one is turned down."""
