"""What everything rests on: settings, weights, files, processes, interrupts, records."""
