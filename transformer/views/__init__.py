"""Everything that draws: plots, diagrams, figures, pages."""
