"""Can one believe a point and its interval? Counted over random studies, trials, hard shapes and ACIC 2016."""
