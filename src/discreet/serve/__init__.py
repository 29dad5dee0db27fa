"""The curator's service: a page and an interface behind which analysts plan, ask and read, and never see a record."""
