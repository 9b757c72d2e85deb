help data
