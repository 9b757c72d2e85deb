bench op --seconds nan
