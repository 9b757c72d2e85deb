bench step --filter gtp
