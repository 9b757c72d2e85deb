bench op --json=1
