bench op --threads=0
