bench op --filter element --threads 1 --seconds 0.001 --json
