data inspect data/lines-0.txt --records 2
