data plan --files data/people.csv --batch 2 --workers 2
