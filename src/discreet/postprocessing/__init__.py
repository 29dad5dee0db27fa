"""Functions of released numbers and public facts only: nothing here can see a record or ask the gate."""
