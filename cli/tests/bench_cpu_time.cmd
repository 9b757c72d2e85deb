bench op --cpu-time --threads 2
