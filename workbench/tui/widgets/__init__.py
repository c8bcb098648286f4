"""Small widgets that screens share: rows of text, fields, lists, tables, the line of keys."""
