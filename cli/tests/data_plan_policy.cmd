data plan --files data/lines-*.txt --policy FILES
