info --jsn
