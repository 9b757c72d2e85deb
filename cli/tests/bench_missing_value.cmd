bench step --seconds
