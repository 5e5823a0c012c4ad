"""The one way of opening connections ourselves; README.md beside it shows how it is used."""
