bench step --filter mlp --threads 2 --seconds 0.001
