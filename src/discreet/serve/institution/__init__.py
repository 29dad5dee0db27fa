"""People whom an institution signs in, by OpenID Connect."""
