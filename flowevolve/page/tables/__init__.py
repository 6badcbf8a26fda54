"""What the page is drawn from: the rows of its tables, which the views in ``static`` know, too."""
