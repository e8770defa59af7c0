"""What the coordinators' topics say when they are folded: columns in, columns out."""
