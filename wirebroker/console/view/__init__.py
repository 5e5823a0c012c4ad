"""How values are shown: text, links, lists, plots, templates."""
