"""The white-box engine behind ``hf/`` models: shared prefixes, label tries, embedding gradients.  Needs torch."""
