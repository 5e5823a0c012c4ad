"""One module for each family of APIs; a handler registers itself with `@handles`."""
