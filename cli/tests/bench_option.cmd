bench op --thread 2
