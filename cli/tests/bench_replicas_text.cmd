bench step --replicas 3 --filter empty --seconds 0.001
