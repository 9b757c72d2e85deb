inof
