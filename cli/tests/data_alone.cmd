data
