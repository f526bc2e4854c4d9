"""Red-teaming a judge: adversarial variants of responses by template or by a generator model, reviewed before they are sent."""
