data inspct
