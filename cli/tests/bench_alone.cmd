bench
