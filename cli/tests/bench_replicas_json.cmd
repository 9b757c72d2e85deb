bench step --replicas 2 --filter tiny --seconds 0.001 --json
