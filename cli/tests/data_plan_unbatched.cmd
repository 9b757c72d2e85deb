data plan --files data/lines-*.txt --workers 2
