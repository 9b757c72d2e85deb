bench step --threads two
