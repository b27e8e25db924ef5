"""Resources: what doors, the panel and the command line do with rows, one module per resource.

Whatever has rules (who may, what must fit together, what follows) is here. The panel also reads and writes storage
itself where a page wants plain rows: its own sessions and password, lists, counts.
"""
