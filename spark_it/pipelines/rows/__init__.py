"""Values as rows: parsing and schemas."""
