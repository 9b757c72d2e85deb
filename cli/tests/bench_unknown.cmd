bench opp
