"""Columns of which nothing was declared: tables of any kind as records that have no outcome, treatment or range."""
