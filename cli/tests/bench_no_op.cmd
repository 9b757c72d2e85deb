bench op --threads 1 --filter zzz
