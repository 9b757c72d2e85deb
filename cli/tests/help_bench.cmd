help bench
