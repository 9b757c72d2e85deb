bench step --filter tiny --threads 1 --seconds 0.001 --json
