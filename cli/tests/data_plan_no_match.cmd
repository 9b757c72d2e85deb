data plan --files nothing-* --batch 4
