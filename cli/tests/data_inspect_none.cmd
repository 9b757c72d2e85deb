data inspect
